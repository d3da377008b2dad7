// SPDX-License-Identifier: Apache-2.0
#include <once/sink.h>

#include <string_view>

#include "model/message_view.h"

namespace once {
namespace {

// MurmurHash2 with the seed of Kafka's default partitioner: a key goes to the partition of the
// same number there and here.
std::uint32_t murmur2(std::string_view bytes) {
  constexpr std::uint32_t seed = 0x9747b28c;
  constexpr std::uint32_t multiplier = 0x5bd1e995;
  const auto byte_at = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<std::uint8_t>(bytes[i]));
  };
  std::uint32_t hash = seed ^ static_cast<std::uint32_t>(bytes.size());
  std::size_t at = 0;
  for (; bytes.size() - at >= 4; at += 4) {
    std::uint32_t word =
        byte_at(at) | byte_at(at + 1) << 8 | byte_at(at + 2) << 16 | byte_at(at + 3) << 24;
    word *= multiplier;
    word ^= word >> 24;
    word *= multiplier;
    hash *= multiplier;
    hash ^= word;
  }
  const std::size_t left = bytes.size() - at;
  if (left == 3) hash ^= byte_at(at + 2) << 16;
  if (left >= 2) hash ^= byte_at(at + 1) << 8;
  if (left >= 1) {
    hash ^= byte_at(at);
    hash *= multiplier;
  }
  hash ^= hash >> 13;
  hash *= multiplier;
  hash ^= hash >> 15;
  return hash;
}

}  // namespace

std::uint32_t partition_of(const Message& message, std::uint32_t partition_count) {
  if (partition_count <= 1) return 0;
  // Without key and id only the body tells a resend from another message.
  const std::string_view chosen = message.key           ? *message.key
                                  : !message.id.empty() ? message.id
                                                        : view_of(message.body);
  return (murmur2(chosen) & 0x7fffffff) % partition_count;
}

}  // namespace once
