// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/envelope.h"

#include <fmt/format.h>

#include <charconv>

#include "model/message_view.h"

namespace once::kafka {
namespace {

template <class Number>
bool read_number(std::string_view& text, int base, Number& number) {
  const std::string_view digits = text.substr(0, text.find('/'));
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return false;
  text.remove_prefix(digits.size());
  return true;
}

bool skip_slash(std::string_view& text) {
  if (!text.starts_with('/')) return false;
  text.remove_prefix(1);
  return true;
}

// A value without data is absent, for Kafka, too.
void add(rd_kafka_headers_t* headers, std::string_view name, std::string_view value) {
  // Fails only for a null name.
  (void)rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                            static_cast<ssize_t>(value.size()));
}

}  // namespace

std::string encode_stamp(const Stamp& stamp) {
  return fmt::format("{:x}/{}/{}", stamp.producer, stamp.epoch, stamp.sequence);
}

std::optional<Stamp> decode_stamp(std::string_view text) {
  Stamp stamp;
  const bool read = read_number(text, 16, stamp.producer) && skip_slash(text) &&
                    read_number(text, 10, stamp.epoch) && skip_slash(text) &&
                    read_number(text, 10, stamp.sequence) && text.empty();
  return read ? std::optional(stamp) : std::nullopt;
}

rd_kafka_headers_t* headers_for(const Message& message, const Stamp& stamp) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size() + 2);
  if (!message.id.empty()) add(headers, id_header, message.id);
  if (stamp.producer != 0) add(headers, stamp_header, encode_stamp(stamp));
  for (const Header& header : message.headers) add(headers, header.name, view_of(header.value));
  return headers;
}

void take_headers(const rd_kafka_message_t& message, Delivery& delivery,
                  std::vector<HeaderView>& into) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  take_headers(headers, delivery, into);
}

void take_headers(const rd_kafka_headers_t* headers, Delivery& delivery,
                  std::vector<HeaderView>& into) {
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    const std::string_view content(static_cast<const char*>(value), value == nullptr ? 0 : size);
    if (name == id_header && delivery.id.empty()) {
      delivery.id = content;
      continue;
    }
    if (name == stamp_header) {
      if (const auto stamp = decode_stamp(content)) {
        delivery.stamp = *stamp;
        continue;
      }
    }
    into.push_back({name, content});
  }
}

}  // namespace once::kafka
