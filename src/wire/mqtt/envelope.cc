// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/base64.h"

namespace once::mqtt {
namespace {

constexpr std::string_view key_property = "once-key";
constexpr std::string_view time_property = "once-time";
constexpr std::string_view body_property = "once-body";
constexpr std::string_view header_property = "once-header";
constexpr std::string_view encoded = "-base64";

struct Field {
  std::string_view header;
  PropertyId property;
};
constexpr std::array<Field, 3> text_fields{
    Field{"mqtt-content-type", PropertyId::content_type},
    Field{"mqtt-response-topic", PropertyId::response_topic},
    Field{"mqtt-correlation-data", PropertyId::correlation_data}};
constexpr std::string_view expiry_header = "mqtt-expiry";

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto done = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || done.ec != std::errc() || done.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

// Names that mean something to a source.
bool is_ours(std::string_view name) {
  if (name.ends_with(encoded)) name.remove_suffix(encoded.size());
  return name == id_header || name == key_property || name == time_property ||
         name == body_property || name == header_property;
}

bool fits(std::string_view text) { return text.size() <= text_bytes_max; }

}  // namespace

void Outgoing::add(std::string_view name, std::string_view value) {
  properties.push_back({PropertyId::user, 0, name, value});
}

void Outgoing::add_part(std::string_view name, std::string_view value) {
  if (is_text(value)) return add(name, value);
  const std::string& longer = texts_.emplace_back(fmt::format("{}{}", name, encoded));
  add(longer, texts_.emplace_back(encode_base64(value)));
}

// Where the header is a property of MQTT. Each is there once.
bool Outgoing::add_own(const Header& header) {
  if (!header.value) return false;
  const auto has = [&](PropertyId id) {
    return std::any_of(properties.begin(), properties.end(),
                       [id](const Property& property) { return property.id == id; });
  };
  if (header.name == expiry_header) {
    const auto seconds = number_of<std::uint32_t>(*header.value);
    if (!seconds || has(PropertyId::message_expiry)) return false;
    // Written as it will be read.
    if (fmt::format("{}", *seconds) != *header.value) return false;
    properties.push_back({PropertyId::message_expiry, *seconds});
    return true;
  }
  for (const Field& field : text_fields) {
    if (header.name != field.header) continue;
    const bool is_topic = field.property == PropertyId::response_topic;
    const bool allowed =
        field.property == PropertyId::correlation_data
            ? fits(*header.value)
            : is_text(*header.value) &&
                  !(is_topic && (header.value->empty() ||
                                 header.value->find_first_of("+#") != std::string::npos));
    if (!allowed || has(field.property)) return false;
    properties.push_back({field.property, 0, *header.value});
    return true;
  }
  return false;
}

void Outgoing::add_header(const Header& header) {
  if (add_own(header)) return;
  if (header.value && is_text(header.name) && is_text(*header.value) && !is_ours(header.name))
    return add(header.name, *header.value);
  std::string text = encode_base64(header.name);
  if (header.value) text = fmt::format("{}.{}", text, encode_base64(*header.value));
  add(header_property, texts_.emplace_back(std::move(text)));
}

Result<Outgoing> Outgoing::make(const Message& message, Version version) {
  Outgoing made;
  made.payload = message.body ? std::string_view(*message.body) : std::string_view();
  if (version == Version::v3) return made;
  if (!message.id.empty()) made.add_part(id_header, message.id);
  if (message.key) made.add_part(key_property, *message.key);
  if (message.timestamp_ms != 0)
    made.add(time_property, made.texts_.emplace_back(fmt::format("{}", message.timestamp_ms)));
  if (!message.body) made.add(body_property, "none");
  for (const Header& header : message.headers) made.add_header(header);
  for (const Property& property : made.properties)
    if (!fits(property.text) || !fits(property.value))
      return fail(Remedy::park, "too_large",
                  fmt::format("a part of the message has more than {} bytes, which MQTT cannot "
                              "carry beside the body",
                              text_bytes_max));
  return made;
}

void Incoming::open(bool own_headers_only) {
  body = publish.payload.data() != nullptr ? publish.payload : std::string_view("");
  if (!own_headers_only) {
    static constexpr std::array<std::string_view, 3> levels{"0", "1", "2"};
    headers.push_back({"mqtt-topic", publish.topic});
    headers.push_back({"mqtt-qos", levels.at(publish.qos)});
    if (publish.retain) headers.push_back({"mqtt-retain", "true"});
  }
  for (const Property& property : publish.properties) {
    if (property.id == PropertyId::user) {
      if (!take_user(property)) headers.push_back({property.text, property.value});
    } else if (property.id == PropertyId::message_expiry) {
      headers.push_back({expiry_header, texts.emplace_back(fmt::format("{}", property.number))});
    }
    for (const Field& field : text_fields)
      if (property.id == field.property) headers.push_back({field.header, property.text});
  }
}

// Whether it says something about the message that is not a header.
bool Incoming::take_user(const Property& property) {
  if (take_part(id_header, property, id) || take_part(key_property, property, key)) return true;
  if (property.text == time_property && timestamp_ms == 0) {
    timestamp_ms = number_of<std::int64_t>(property.value).value_or(0);
    return timestamp_ms != 0;
  }
  if (property.text == body_property && property.value == "none" && publish.payload.empty()) {
    body = {};
    return true;
  }
  return property.text == header_property && take_header(property.value);
}

std::optional<std::string_view> Incoming::decoded(std::string_view text) {
  auto bytes = decode_base64(text);
  if (!bytes) return std::nullopt;
  return texts.emplace_back(std::move(*bytes));
}

// The first one counts.
bool Incoming::take_part(std::string_view name, const Property& property, std::string_view& part) {
  if (part.data() != nullptr || !property.text.starts_with(name)) return false;
  const std::string_view rest = property.text.substr(name.size());
  if (!rest.empty() && rest != encoded) return false;
  const auto value = rest.empty() ? std::optional(property.value) : decoded(property.value);
  if (value) part = *value;
  return value.has_value();
}

bool Incoming::take_header(std::string_view text) {
  const auto dot = text.find('.');
  const auto name = decoded(text.substr(0, dot));
  if (!name) return false;
  if (dot == std::string_view::npos) {
    headers.push_back({*name, {}});
    return true;
  }
  const auto value = decoded(text.substr(dot + 1));
  if (value) headers.push_back({*name, *value});
  return value.has_value();
}

}  // namespace once::mqtt
