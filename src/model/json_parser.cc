// SPDX-License-Identifier: Apache-2.0
#include "model/json_parser.h"

#include <charconv>
#include <string>

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

// The first part of a pointer, decoded; removes it.
std::string take_part(std::string_view& pointer) {
  pointer.remove_prefix(1);
  const std::string_view raw = pointer.substr(0, pointer.find('/'));
  pointer.remove_prefix(raw.size());
  std::string part;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const bool escaped = raw[i] == '~' && i + 1 < raw.size();
    if (escaped) ++i;
    part.push_back(!escaped ? raw[i] : raw[i] == '0' ? '~' : '/');
  }
  return part;
}

simdjson::error_code descend(ondemand::value& value, std::string_view pointer,
                             const UseJsonValue& use);

simdjson::error_code search_object(ondemand::object object, std::string_view pointer,
                                   const UseJsonValue& use) {
  const std::string name = take_part(pointer);
  bool found = false;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    if (key != name) continue;
    if (found) return doubled_member;
    found = true;
    ondemand::value value;
    if (const auto error = field.value().get(value)) return error;
    if (const auto error = descend(value, pointer, use)) return error;
  }
  return found ? simdjson::SUCCESS : simdjson::NO_SUCH_FIELD;
}

simdjson::error_code search_array(ondemand::array array, std::string_view pointer,
                                  const UseJsonValue& use) {
  const std::string part = take_part(pointer);
  std::size_t index = 0;
  const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = read.ec == std::errc() && read.ptr == part.data() + part.size() &&
                        (part == "0" || part[0] != '0');
  if (!is_index) return simdjson::NO_SUCH_FIELD;
  for (auto item : array) {
    ondemand::value value;
    if (const auto error = item.get(value)) return error;
    if (index-- == 0) return descend(value, pointer, use);
  }
  return simdjson::NO_SUCH_FIELD;
}

simdjson::error_code descend(ondemand::value& value, std::string_view pointer,
                             const UseJsonValue& use) {
  if (pointer.empty()) return use(value);
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) return error;
    return search_object(object, pointer, use);
  }
  if (type != ondemand::json_type::array) return simdjson::NO_SUCH_FIELD;
  ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  return search_array(array, pointer, use);
}

}  // namespace

const char* json_error_text(simdjson::error_code error) {
  return error == doubled_member ? "a member stands twice in an object"
                                 : simdjson::error_message(error);
}

simdjson::error_code use_value_at(ondemand::document& document, std::string_view pointer,
                                  const UseJsonValue& use) {
  document.rewind();
  ondemand::json_type type;
  if (const auto error = document.type().get(type)) return error;
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto error = document.get_object().get(object)) return error;
    return search_object(object, pointer, use);
  }
  if (type != ondemand::json_type::array) return simdjson::NO_SUCH_FIELD;
  ondemand::array array;
  if (const auto error = document.get_array().get(array)) return error;
  return search_array(array, pointer, use);
}

}  // namespace once
