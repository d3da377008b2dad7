// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "model/message_view.h"

namespace once::rabbitmq {
namespace {

constexpr std::size_t short_string_bytes_max = 255;
constexpr std::uint8_t persistent = 2;

constexpr std::string_view key_header = "once-key";
constexpr std::string_view no_body_header = "once-no-body";
constexpr std::string_view time_header = "timestamp_in_ms";

// The properties that are texts. The user is left out: the broker refuses one that is not the
// user of the connection. So is the expiration: by it a copy would be lost at its destination.
struct Property {
  std::string_view name;
  amqp_flags_t flag;
  amqp_bytes_t amqp_basic_properties_t::*value;
  bool is_sent = true;
};
constexpr std::array<Property, 8> text_properties{{
    {"content-type", AMQP_BASIC_CONTENT_TYPE_FLAG, &amqp_basic_properties_t::content_type},
    {"content-encoding", AMQP_BASIC_CONTENT_ENCODING_FLAG,
     &amqp_basic_properties_t::content_encoding},
    {"correlation-id", AMQP_BASIC_CORRELATION_ID_FLAG, &amqp_basic_properties_t::correlation_id},
    {"reply-to", AMQP_BASIC_REPLY_TO_FLAG, &amqp_basic_properties_t::reply_to},
    {"type", AMQP_BASIC_TYPE_FLAG, &amqp_basic_properties_t::type},
    {"app-id", AMQP_BASIC_APP_ID_FLAG, &amqp_basic_properties_t::app_id},
    {"user-id", AMQP_BASIC_USER_ID_FLAG, &amqp_basic_properties_t::user_id, false},
    {"expiration", AMQP_BASIC_EXPIRATION_FLAG, &amqp_basic_properties_t::expiration, false},
}};
constexpr std::string_view priority_property = "priority";

bool has(const amqp_basic_properties_t& properties, amqp_flags_t flag) {
  return (properties._flags & flag) != 0;
}

Error too_long(const std::string& what, std::size_t size) {
  return {Remedy::park, "too_large",
          fmt::format("{} has {} bytes; AMQP allows {}", what, size, short_string_bytes_max),
          std::nullopt};
}

void take_header(const amqp_table_entry_t& entry, Arrived& arrived, bool& has_key, bool& has_body) {
  const std::string_view name = view_of_bytes(entry.key);
  if (name == "x-delivery-count") {
    if (const auto count = number_of(entry.value))
      arrived.attempt = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(*count, 0, std::numeric_limits<std::int32_t>::max()) + 1);
    return;
  }
  if (name == time_header) {
    if (const auto time_ms = number_of(entry.value)) {
      arrived.message.timestamp_ms = *time_ms;
      return;
    }
  }
  auto text = text_of(entry.value);
  if (name == id_header && text) {
    arrived.message.id = std::move(*text);
  } else if (name == key_header) {
    has_key = true;
    arrived.message.key = std::move(text);
  } else if (name == no_body_header) {
    has_body = false;
  } else {
    arrived.message.headers.push_back({std::string(name), std::move(text)});
  }
}

std::int64_t milliseconds_of(std::uint64_t seconds) {
  constexpr auto seconds_max =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 1000);
  return seconds > seconds_max ? 0 : static_cast<std::int64_t>(seconds) * 1000;
}

}  // namespace

Envelope::Envelope(const Message& message, std::int64_t now_ms, bool marks_key) {
  const std::int64_t time_ms = message.timestamp_ms != 0 ? message.timestamp_ms : now_ms;
  properties_.delivery_mode = persistent;
  properties_._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
  if (time_ms > 0) {
    properties_.timestamp = static_cast<std::uint64_t>(time_ms / 1000);
    properties_._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
  }
  if (message.id.size() <= short_string_bytes_max && !message.id.empty())
    set(properties_.message_id, AMQP_BASIC_MESSAGE_ID_FLAG, message.id);
  else if (!message.id.empty())
    headers_.add_text(id_header, message.id);
  for (const Header& header : message.headers) add_header(header);
  if (message.key)
    headers_.add_text(key_header, *message.key);
  else if (marks_key)
    headers_.add_void(key_header);
  if (!message.body) headers_.add_flag(no_body_header, true);
  headers_.add_number(time_header, time_ms);
  properties_.headers = headers_.get();
  properties_._flags |= AMQP_BASIC_HEADERS_FLAG;
  body_ = bytes_of(view_of(message.body));
  bytes_ += headers_.bytes();
}

void Envelope::set(amqp_bytes_t& property, amqp_flags_t flag, std::string_view value) {
  property = bytes_of(value);
  properties_._flags |= flag;
  bytes_ += 1 + value.size();
}

void Envelope::add_header(const Header& header) {
  if (header.value && set_property(header.name, *header.value)) return;
  if (header.name.size() > short_string_bytes_max && !refusal_)
    refusal_ = too_long("the name of a header", header.name.size());
  if (header.value)
    headers_.add_text(header.name, *header.value);
  else
    headers_.add_void(header.name);
}

bool Envelope::set_property(std::string_view name, std::string_view value) {
  if (name == priority_property && !has(properties_, AMQP_BASIC_PRIORITY_FLAG)) {
    std::uint8_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || fmt::format("{}", number) != value) return false;
    properties_.priority = number;
    properties_._flags |= AMQP_BASIC_PRIORITY_FLAG;
    return true;
  }
  for (const Property& property : text_properties) {
    if (property.name != name) continue;
    if (!property.is_sent || has(properties_, property.flag) ||
        value.size() > short_string_bytes_max)
      return false;
    set(properties_.*property.value, property.flag, value);
    return true;
  }
  return false;
}

void take_properties(const amqp_basic_properties_t& properties, std::string_view exchange,
                     std::string_view routing_key, Arrived& arrived) {
  Message& message = arrived.message;
  if (has(properties, AMQP_BASIC_TIMESTAMP_FLAG))
    message.timestamp_ms = milliseconds_of(properties.timestamp);
  if (has(properties, AMQP_BASIC_MESSAGE_ID_FLAG))
    message.id = view_of_bytes(properties.message_id);
  for (const Property& property : text_properties)
    if (has(properties, property.flag))
      message.headers.push_back(
          {std::string(property.name), std::string(view_of_bytes(properties.*property.value))});
  if (has(properties, AMQP_BASIC_PRIORITY_FLAG))
    message.headers.push_back(
        {std::string(priority_property), fmt::format("{}", properties.priority)});
  bool has_key = false;
  bool has_body = true;
  if (has(properties, AMQP_BASIC_HEADERS_FLAG))
    for (int i = 0; i < properties.headers.num_entries; ++i)
      take_header(properties.headers.entries[i], arrived, has_key, has_body);
  if (!has_key && !exchange.empty()) message.key = std::string(routing_key);
  if (!has_body) message.body.reset();
}

void take_body(std::string body, Arrived& arrived) {
  if (arrived.message.body || !body.empty()) arrived.message.body = std::move(body);
}

}  // namespace once::rabbitmq
