// SPDX-License-Identifier: Apache-2.0
#include "operate/message_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "model/message_view.h"
#include "operate/failure.h"

namespace once::operate {
namespace {

Result<std::string> text_at(const Json& json, const std::string& name) {
  if (!json.is_string()) return fail_input(fmt::format("\"{}\" must be a string", name));
  return json.get<std::string>();
}

// A text, or null for what is absent.
Result<std::optional<std::string>> part_at(const Json& json, const std::string& name) {
  if (json.is_null()) return std::nullopt;
  if (!json.is_string()) return fail_input(fmt::format("\"{}\" must be a string or null", name));
  return json.get<std::string>();
}

Result<std::string> bytes_at(const Json& json, const std::string& name) {
  auto bytes = decode_base64(ONCE_TRY(text_at(json, name)));
  if (!bytes) return fail_input(fmt::format("\"{}\" is not base64", name));
  return std::move(*bytes);
}

Result<Header> header_of(const Json& json) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string())
    return fail_input("a header is written {\"name\": …, \"value\": …}");
  Header header{json["name"].get<std::string>()};
  for (const auto& [field, value] : json.items()) {
    if (field == "value")
      header.value = ONCE_TRY(part_at(value, "value"));
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
      auto part = ONCE_TRY(part_at(value, "headers/" + name));
      headers.push_back({name, std::move(part)});
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

Result<std::optional<std::string>> body_of(const Json& json, std::string_view line) {
  const Json& body = json["body"];
  if (body.is_null()) return std::nullopt;
  const std::string encoding =
      json.contains("encoding") ? ONCE_TRY(text_at(json["encoding"], "encoding")) : "text";
  if (encoding != "text" && encoding != "base64")
    return fail_input(fmt::format("\"encoding\" is \"{}\", but must be text or base64", encoding));
  if (encoding == "base64") return bytes_at(body, "body");
  if (body.is_string()) return body.get<std::string>();
  if (body.is_structured()) return raw_body(line);
  return fail_input("\"body\" must be a string, an object, an array or null");
}

Status take_field(const std::string& name, const Json& value, Message& message) {
  if (name == "id")
    message.id = ONCE_TRY(text_at(value, name));
  else if (name == "key")
    message.key = ONCE_TRY(part_at(value, name));
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

// Parses a line, and notes a name that stands twice in an object outside of the body.
Json parse_envelope(std::string_view line, std::string& doubled) {
  std::vector<std::set<std::string>> names;  // of the objects that are open
  bool in_body = false;
  const auto look = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if (names.size() == 1) in_body = name == "body";
    const bool seen = !(in_body && names.size() > 1) && !names.back().insert(name).second;
    if (seen && doubled.empty()) doubled = name;
    return true;
  };
  return Json::parse(line, look, false);
}

}  // namespace

bool is_utf8(std::string_view bytes) { return simdjson::validate_utf8(bytes.data(), bytes.size()); }

void put_part(Json& json, const std::string& name, std::string_view part) {
  if (part.data() == nullptr)
    json[name] = nullptr;
  else
    put_bytes(json, name, part);
}

void put_bytes(Json& json, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes))
    json[name] = bytes;
  else
    json[name + "_base64"] = encode_base64(bytes);
}

std::string text_or_base64(std::string_view bytes) {
  if (bytes.data() == nullptr) return "(null)";
  return is_utf8(bytes) ? std::string(bytes) : "base64:" + encode_base64(bytes);
}

std::string_view partition_number(std::string_view partition) {
  return partition.substr(partition.find_last_of('/') + 1);  // npos + 1 is 0
}

std::string_view partition_topic(std::string_view partition) {
  const auto slash = partition.find_last_of('/');
  return slash == std::string_view::npos ? std::string_view() : partition.substr(0, slash);
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
  put_part(json, "key", delivery.key);
  json["headers"] = Json::array();
  for (const HeaderView& header : delivery.headers) {
    Json entry = {{"name", header.name}};
    put_part(entry, "value", header.value);
    json["headers"].push_back(std::move(entry));
  }
  json["timestamp_ms"] = delivery.timestamp_ms;
  json["stamp"] = {{"producer", delivery.stamp.producer},
                   {"epoch", delivery.stamp.epoch},
                   {"sequence", delivery.stamp.sequence}};
  if (!delivery.has_body()) {
    json["body"] = nullptr;
    return json;
  }
  const bool text = is_utf8(delivery.body);
  json["body"] = text ? std::string(delivery.body) : encode_base64(delivery.body);
  json["encoding"] = text ? "text" : "base64";
  return json;
}

Json json_of(const Message& message) {
  Json json = json_of(DeliveryView(message).delivery());
  for (const char* field : {"partition", "offset", "stamp"}) json.erase(field);
  return json;
}

Result<Message> message_of(std::string_view line) {
  std::string doubled;
  const Json json = parse_envelope(line, doubled);
  if (!doubled.empty()) return fail_input(fmt::format("\"{}\" stands twice in an object", doubled));
  if (json.is_discarded()) return fail_input("this is not JSON");
  if (!json.is_object()) return fail_input("this is JSON, but not an object");
  Message message;
  for (const auto& [name, value] : json.items()) ONCE_TRY(take_field(name, value, message));
  if (json.contains("body")) message.body = ONCE_TRY(body_of(json, line));
  return message;
}

}  // namespace once::operate
