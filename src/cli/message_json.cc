// SPDX-License-Identifier: Apache-2.0
#include "cli/message_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cli/exit_code.h"

namespace once::cli {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Result<std::string> text_at(const Json& json, const std::string& name) {
  if (!json.is_string()) return fail_input(fmt::format("\"{}\" must be a string", name));
  return json.get<std::string>();
}

Result<std::string> bytes_at(const Json& json, const std::string& name) {
  return bytes_of_base64(ONCE_TRY(text_at(json, name)));
}

Result<Header> header_of(const Json& json) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string())
    return fail_input("a header is written {\"name\": …, \"value\": …}");
  Header header{json["name"].get<std::string>(), {}};
  for (const auto& [field, value] : json.items()) {
    if (field == "value")
      header.value = ONCE_TRY(text_at(value, "value"));
    else if (field == "value_base64")
      header.value = ONCE_TRY(bytes_at(value, field));
    else if (field != "name")
      return fail_input(fmt::format("a header has no field \"{}\"", field));
  }
  return header;
}

Result<std::vector<Header>> headers_of(const Json& json) {
  std::vector<Header> headers;
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      std::string text = ONCE_TRY(text_at(value, "headers/" + name));
      headers.push_back({name, std::move(text)});
    }
    return headers;
  }
  if (!json.is_array()) return fail_input("\"headers\" must be an object or an array");
  for (const Json& entry : json) headers.push_back(ONCE_TRY(header_of(entry)));
  return headers;
}

// The text of an object or array as it stands in the line: numbers of any length stay whole.
Result<std::string> raw_body(std::string_view line) {
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(line);
  simdjson::ondemand::document document;
  simdjson::ondemand::value body;
  std::string_view raw;
  auto error = parser.iterate(padded).get(document);
  if (!error) error = document.find_field_unordered("body").get(body);
  simdjson::ondemand::json_type type{};
  if (!error) error = body.type().get(type);
  if (!error && type == simdjson::ondemand::json_type::object) {
    simdjson::ondemand::object object;
    error = body.get_object().get(object);
    if (!error) error = object.raw_json().get(raw);
  } else if (!error) {
    simdjson::ondemand::array array;
    error = body.get_array().get(array);
    if (!error) error = array.raw_json().get(raw);
  }
  if (error) return fail_input(fmt::format("\"body\": {}", simdjson::error_message(error)));
  return std::string(raw);
}

Result<std::string> body_of(const Json& json, std::string_view line) {
  const Json& body = json["body"];
  const std::string encoding =
      json.contains("encoding") ? ONCE_TRY(text_at(json["encoding"], "encoding")) : "text";
  if (encoding != "text" && encoding != "base64")
    return fail_input(fmt::format("\"encoding\" is \"{}\", but must be text or base64", encoding));
  if (encoding == "base64") return bytes_at(body, "body");
  if (body.is_string()) return body.get<std::string>();
  if (body.is_structured()) return raw_body(line);
  return fail_input("\"body\" must be a string, an object or an array");
}

Status take_field(const std::string& name, const Json& value, Message& message) {
  if (name == "id")
    message.id = ONCE_TRY(text_at(value, name));
  else if (name == "key")
    message.key = ONCE_TRY(text_at(value, name));
  else if (name == "id_base64")
    message.id = ONCE_TRY(bytes_at(value, name));
  else if (name == "key_base64")
    message.key = ONCE_TRY(bytes_at(value, name));
  else if (name == "headers")
    message.headers = ONCE_TRY(headers_of(value));
  else if (name == "timestamp_ms" && value.is_number_integer() && value.get<std::int64_t>() >= 0)
    message.timestamp_ms = value.get<std::int64_t>();
  else if (name == "timestamp_ms")
    return fail_input("\"timestamp_ms\" must be a whole number of milliseconds since 1970");
  else if (name != "body" && name != "encoding" && name != "partition" && name != "offset" &&
           name != "stamp")
    return fail_input(fmt::format(
        "unknown field \"{}\"; known: id, key, headers, body, encoding, timestamp_ms", name));
  return {};
}

}  // namespace

bool is_utf8(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

void put_bytes(Json& json, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes))
    json[name] = bytes;
  else
    json[name + "_base64"] = base64_of(bytes);
}

std::string shown(std::string_view bytes) {
  return is_utf8(bytes) ? printable(bytes) : "base64:" + base64_of(bytes);
}

std::string_view partition_number(std::string_view partition) {
  return partition.substr(partition.find_last_of('/') + 1);  // npos + 1 is 0
}

Json json_of(const Delivery& delivery) {
  Json json;
  const std::string_view number = partition_number(delivery.partition);
  const bool numeric = !number.empty() && number.size() < 10 &&
                       number.find_first_not_of("0123456789") == std::string_view::npos;
  if (numeric)
    json["partition"] = std::stoi(std::string(number));
  else
    json["partition"] = number;
  json["offset"] = delivery.offset;
  put_bytes(json, "id", delivery.id);
  put_bytes(json, "key", delivery.key);
  json["headers"] = Json::array();
  for (const HeaderView& header : delivery.headers) {
    if (header.name == id_header && header.value == delivery.id) continue;  // it is the id
    Json entry = {{"name", header.name}};
    put_bytes(entry, "value", header.value);
    json["headers"].push_back(std::move(entry));
  }
  json["timestamp_ms"] = delivery.timestamp_ms;
  json["stamp"] = {{"producer", delivery.stamp.producer},
                   {"epoch", delivery.stamp.epoch},
                   {"sequence", delivery.stamp.sequence}};
  const bool text = is_utf8(delivery.body);
  json["body"] = text ? std::string(delivery.body) : base64_of(delivery.body);
  json["encoding"] = text ? "text" : "base64";
  return json;
}

Result<Message> message_of(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return fail_input("this is not JSON");
  if (!json.is_object()) return fail_input("this is JSON, but not an object");
  Message message;
  for (const auto& [name, value] : json.items()) ONCE_TRY(take_field(name, value, message));
  if (json.contains("body")) message.body = ONCE_TRY(body_of(json, line));
  return message;
}

std::string base64_of(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text.push_back(i <= count ? alphabet[group >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

Result<std::string> bytes_of_base64(std::string_view text) {
  std::string bytes;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  if (text.size() % 4 != 0) return fail_input("base64 must come in groups of four characters");
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t group = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const std::size_t digit = alphabet.find(text[i]);
      const bool pad = i + padding >= text.size();
      if (digit == std::string_view::npos && !pad)
        return fail_input(fmt::format("\"{}\" is not a character of base64", text[i]));
      group = group << 6 | (pad ? 0u : static_cast<std::uint32_t>(digit));
    }
    for (int shift = 16; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(group >> shift & 255));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace once::cli
