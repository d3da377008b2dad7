// SPDX-License-Identifier: Apache-2.0
#include "model/witness.h"

#include <once/sink.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace once {
namespace {

// Eight bytes at a time, in an order that is the same on every machine: the digest is stored.
class Digest {
 public:
  void add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15u;
    state_ ^= state_ >> 32;
  }
  void add(std::string_view bytes) {
    add(bytes.size());
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word_of(bytes.substr(0, 8)));
    add(word_of(bytes));
  }
  std::uint64_t value() const { return state_; }

 private:
  static std::uint64_t word_of(std::string_view bytes) {
    std::uint64_t word = 0;
    for (std::size_t i = bytes.size(); i > 0; --i)
      word = word << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return word;
  }

  std::uint64_t state_ = 0x6f6e63652077736eu;
};

// Absent is not empty.
void add_part(Digest& digest, const std::optional<std::string>& part) {
  digest.add(part ? 1u : 0u);
  if (part) digest.add(*part);
}

}  // namespace

std::uint64_t digest_of(const Message& message) {
  Digest digest;
  digest.add(message.id);
  add_part(digest, message.key);
  add_part(digest, message.body);
  digest.add(message.headers.size());
  for (const Header& header : message.headers) {
    digest.add(header.name);
    add_part(digest, header.value);
  }
  return digest.value();
}

Witness witness_of(const Delivery& delivery) {
  Digest digest;
  digest.add(delivery.key);
  digest.add(delivery.body);
  digest.add(static_cast<std::uint64_t>(delivery.timestamp_ms));
  return {delivery.offset, digest.value()};
}

}  // namespace once
