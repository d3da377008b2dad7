// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/assert.h"
#include "wire/mqtt/envelope.h"
#include "wire/mqtt/packet.h"

namespace {

using namespace once;
using namespace once::mqtt;

constexpr std::size_t frame_bytes_max = 1 << 20;

// What was read is written and read again as the same.
void check(const Publish& publish, Version version) {
  std::string bytes;
  encode(publish, version, bytes);
  ONCE_ASSERT(bytes.size() == encoded_bytes(publish, version));
  FrameReader reader(bytes.size());
  reader.add(bytes);
  const auto frame = reader.next().value();
  ONCE_ASSERT(frame.has_value());
  ONCE_ASSERT(std::get<Publish>(decode(*frame, version).value()) == publish);
}

void check(const Answer& answer, Version version) {
  std::string bytes;
  encode(answer, version, bytes);
  FrameReader reader(bytes.size());
  reader.add(bytes);
  const auto again = std::get<Answer>(decode(*reader.next().value(), version).value());
  ONCE_ASSERT(again.type == answer.type && again.packet == answer.packet);
  ONCE_ASSERT(again.reason == answer.reason);
}

void check(Frame frame, Version version) {
  Incoming incoming;
  incoming.frame = std::move(frame);
  const auto packet = decode(incoming.frame, version);
  if (!packet) {
    ONCE_ASSERT(packet.error().tag == "protocol");
    return;
  }
  if (const auto* const answer = std::get_if<Answer>(&*packet)) check(*answer, version);
  if (const auto* const publish = std::get_if<Publish>(&*packet)) {
    check(*publish, version);
    incoming.publish = *publish;
    incoming.open(false);
    ONCE_ASSERT(incoming.headers.size() >= 2);
  }
}

}  // namespace

// The first byte says the version and how the rest is cut; the rest is what a server sends. It is
// the same however it is cut, every packet is read or refused, and nothing is read beyond it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Version version = (data[0] & 1) != 0 ? Version::v5 : Version::v3;
  const std::size_t piece = 1 + data[0] / 2;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  FrameReader whole(frame_bytes_max);
  whole.add(input);
  FrameReader pieces(frame_bytes_max);
  for (std::size_t at = 0; at < input.size(); at += piece) {
    pieces.add(input.substr(at, piece));
    while (true) {
      auto cut = pieces.next();
      if (!cut) {
        ONCE_ASSERT(cut.error().tag == "protocol");
        return 0;
      }
      if (!*cut) break;
      const auto same = whole.next();
      ONCE_ASSERT(same && *same == *cut);
      check(std::move(**cut), version);
    }
  }
  return 0;
}
