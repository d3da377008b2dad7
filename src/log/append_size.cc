// SPDX-License-Identifier: Apache-2.0
#include "log/append_size.h"

#include <fmt/format.h>

#include <cstdint>

#include "log/limits.h"
#include "log/record_batch.h"
#include "model/message_view.h"

namespace once::log {
namespace {

std::size_t weight_of(const Message& message) {
  std::size_t bytes =
      64 + message.id.size() + view_of(message.key).size() + view_of(message.body).size();
  for (const Header& header : message.headers)
    bytes += 10 + header.name.size() + view_of(header.value).size();
  return bytes;
}

}  // namespace

Result<std::size_t> weigh(std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) {
    const std::size_t weight = weight_of(message);
    bytes += weight;
    if (weight <= message_bytes_max && message.headers.size() <= headers_max) continue;
    // The exact size is only worth the work when it is close.
    if (record_bytes(message, 0, static_cast<std::uint32_t>(batch_count_max)) == 0)
      return fail(Remedy::park, "too_large",
                  fmt::format("a message of {} bytes and {} headers; at most {} and {} are taken",
                              weight, message.headers.size(), message_bytes_max, headers_max));
  }
  return bytes;
}

std::size_t count_in_one_append(std::span<const Message> messages) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < messages.size() && count < batch_count_max) {
    bytes += weight_of(messages[count]);
    if (bytes > batch_bytes_max && count > 0) break;
    ++count;
  }
  return count;
}

}  // namespace once::log
