// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace once {

// Serializers of Confluent's schema registry put a zero byte and the four bytes of a schema's
// number before the JSON. No JSON begins with a zero byte.
constexpr bool has_schema_frame(std::string_view body) {
  return body.size() > 5 && body.front() == '\0';
}
constexpr std::string_view without_schema_frame(std::string_view body) {
  return has_schema_frame(body) ? body.substr(5) : body;
}

// Behind a frame there is JSON, or what only a schema explains.
constexpr bool is_framed_binary(std::string_view body) {
  if (!has_schema_frame(body)) return false;
  const std::string_view inner = without_schema_frame(body);
  const auto first = inner.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ||
         std::string_view("{[\"-0123456789tfn").find(inner[first]) == std::string_view::npos;
}
inline constexpr std::string_view framed_binary_text =
    "the body is not JSON: behind the frame of a schema registry there is Avro or Protobuf, which "
    "Once does not read; produce JSON, or convert the topic";

}  // namespace once
