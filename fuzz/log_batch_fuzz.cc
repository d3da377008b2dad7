// SPDX-License-Identifier: Apache-2.0
// Decodes arbitrary bytes as a record batch. What is accepted must have all its views inside the
// bytes, and must decode to the same again after it was encoded from its messages.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "log/record_batch.h"

namespace {

using once::log::Deliveries;

void check_inside(std::string_view view, std::string_view whole) {
  if (view.empty()) return;
  ONCE_ASSERT(view.data() >= whole.data());
  ONCE_ASSERT(view.data() + view.size() <= whole.data() + whole.size());
}

once::Message message_of(const once::Delivery& delivery) {
  once::Message message{std::string(delivery.id),
                        std::string(delivery.key),
                        std::string(delivery.body),
                        {},
                        delivery.timestamp_ms};
  for (const once::HeaderView& header : delivery.headers)
    message.headers.push_back({std::string(header.name), std::string(header.value)});
  return message;
}

void check_round_trip(const Deliveries& decoded, const once::Stamp& stamp) {
  std::vector<once::Message> messages;
  for (const once::Delivery& delivery : decoded.deliveries) {
    messages.push_back(message_of(delivery));
    if (once::log::record_bytes(messages.back(), INT64_MAX / 4, 1 << 30) == 0) return;
  }
  once::log::Buffer buffer;
  encode_batch(buffer, decoded.deliveries.front().offset, stamp, 1, messages);
  Deliveries again;
  ONCE_ASSERT(decode_batch(buffer.view(), stamp, true, again).has_value());
  again.finish();
  ONCE_ASSERT(again.deliveries.size() == decoded.deliveries.size());
  for (std::size_t i = 0; i < again.deliveries.size(); ++i) {
    ONCE_ASSERT(again.deliveries[i].id == decoded.deliveries[i].id);
    ONCE_ASSERT(again.deliveries[i].key == decoded.deliveries[i].key);
    ONCE_ASSERT(again.deliveries[i].body == decoded.deliveries[i].body);
    ONCE_ASSERT(again.deliveries[i].offset == decoded.deliveries[i].offset);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first byte chooses whether the checksum counts: without it the fuzzer gets deeper.
  if (size == 0) return 0;
  const bool check_crc = (data[0] & 1) != 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const once::Stamp stamp{9, 1, 100};
  Deliveries decoded;
  if (!decode_batch(bytes, stamp, check_crc, decoded)) return 0;
  decoded.finish();
  ONCE_ASSERT(!decoded.deliveries.empty());
  for (const once::Delivery& delivery : decoded.deliveries) {
    check_inside(delivery.id, bytes);
    check_inside(delivery.key, bytes);
    check_inside(delivery.body, bytes);
    for (const once::HeaderView& header : delivery.headers) {
      check_inside(header.name, bytes);
      check_inside(header.value, bytes);
    }
  }
  check_round_trip(decoded, stamp);
  return 0;
}
