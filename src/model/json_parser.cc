// SPDX-License-Identifier: Apache-2.0
#include "model/json_parser.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "model/decimal.h"

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// The characters of an escape sequence, with its backslash; 0 if it is not one of JSON.
std::size_t escape_size(std::string_view text) {
  constexpr std::string_view single = "\"\\/bfnrt";
  if (text.size() > 1 && single.find(text[1]) != std::string_view::npos) return 2;
  const std::string_view hex = text.substr(std::min<std::size_t>(text.size(), 2), 4);
  const bool is_unicode = text.size() > 1 && text[1] == 'u' && hex.size() == 4 &&
                          std::all_of(hex.begin(), hex.end(), is_hex);
  return is_unicode ? 6 : 0;
}

// The size of a string without its quotes, from behind the first one; npos if it has no end, or an
// escape that is not one of JSON. Control characters were refused when the tokens were found.
std::size_t string_size(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') return at;
    if (text[at] != '\\') continue;
    const std::size_t size = escape_size(text.substr(at));
    if (size == 0) break;
    at += size - 1;
  }
  return std::string_view::npos;
}

simdjson::error_code check_string(std::string_view token) {
  const std::size_t size = string_size(token.substr(1));
  if (size == std::string_view::npos) return simdjson::STRING_ERROR;
  return size + 2 == token.size() ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
}

simdjson::error_code check_scalar(std::string_view token) {
  if (token.starts_with('"')) return check_string(token);
  const bool is_scalar =
      is_decimal(token) || token == "true" || token == "false" || token == "null";
  return is_scalar ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
}

bool is_nested(ondemand::json_type type) {
  return type == ondemand::json_type::object || type == ondemand::json_type::array;
}

// Looks at every value of a document; the parser itself only checks what it is asked for.
class Checker {
 public:
  explicit Checker(std::string_view text) : text_end_(text.data() + text.size()) {}

  // A value, or the document itself.
  template <class Value>
  simdjson::error_code nested(Value& of, ondemand::json_type type, std::size_t depth) {
    constexpr std::size_t depth_max = 1024;
    if (depth > depth_max) return simdjson::DEPTH_ERROR;
    if (type == ondemand::json_type::object) {
      ondemand::object members;
      if (const auto error = of.get_object().get(members)) return error;
      return object(members, depth);
    }
    ondemand::array elements;
    if (const auto error = of.get_array().get(elements)) return error;
    return array(elements, depth);
  }

 private:
  simdjson::error_code object(ondemand::object& of, std::size_t depth) {
    for (auto field : of) {
      ondemand::raw_json_string name;
      ondemand::value member;
      if (const auto error = field.key().get(name)) return error;
      const std::string_view rest(name.raw(), static_cast<std::size_t>(text_end_ - name.raw()));
      if (string_size(rest) == std::string_view::npos) return simdjson::STRING_ERROR;
      if (const auto error = field.value().get(member)) return error;
      if (const auto error = value(member, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code array(ondemand::array& of, std::size_t depth) {
    for (auto item : of) {
      ondemand::value element;
      if (const auto error = item.get(element)) return error;
      if (const auto error = value(element, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code value(ondemand::value of, std::size_t depth) {
    ondemand::json_type type;
    if (const auto error = of.type().get(type)) return error;
    if (is_nested(type)) return nested(of, type, depth);
    if (const auto error = check_scalar(without_blanks(of.raw_json_token()))) return error;
    // The parser would pass over a string and a colon behind it as if they were a member.
    if (type == ondemand::json_type::string) return of.get_raw_json_string().error();
    return simdjson::SUCCESS;
  }

  const char* const text_end_;
};

simdjson::error_code check_document(ondemand::document& document, std::string_view text) {
  ondemand::json_type type;
  if (const auto error = document.type().get(type)) return error;
  if (!is_nested(type)) return check_scalar(without_blanks(text));
  if (const auto error = Checker(text).nested(document, type, 0)) return error;
  return check_end(document);
}

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
  if (error == doubled_member) return "a member stands twice in an object";
  if (error == huge_exponent) return "a number has an exponent beyond 1000";
  return simdjson::error_message(error);
}

simdjson::error_code check_end(ondemand::document& document) {
  // Behind the value there is nothing, which is an error to ask about.
  const char* behind = nullptr;
  const bool ended = document.current_location().get(behind) == simdjson::OUT_OF_BOUNDS;
  return ended ? simdjson::SUCCESS : simdjson::TRAILING_CONTENT;
}

simdjson::error_code JsonParser::find_tokens(std::string_view body) {
  if (text.size() < body.size() + simdjson::SIMDJSON_PADDING)
    text.resize(2 * (body.size() + simdjson::SIMDJSON_PADDING));
  std::memcpy(text.data(), body.data(), body.size());
  std::memset(text.data() + body.size(), ' ', simdjson::SIMDJSON_PADDING);
  return parser.iterate(text.data(), body.size(), text.size()).get(document);
}

simdjson::error_code JsonParser::parse(std::string_view body) {
  if (const auto error = find_tokens(body)) return error;
  return check_document(document, std::string_view(text.data(), body.size()));
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
