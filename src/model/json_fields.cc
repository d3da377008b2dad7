// SPDX-License-Identifier: Apache-2.0
#include "model/json_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/json_parser.h"
#include "model/json_text.h"

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t depth_max = 64;

// The buffers stay from one message to the next.
JsonParser& thread_parser() {
  thread_local JsonParser own;
  return own;
}

tl::unexpected<Error> no_id(std::string text) {
  return fail(Remedy::park, "no_id", std::move(text));
}

tl::unexpected<Error> no_id(std::string_view pointer, simdjson::error_code error) {
  return no_id(fmt::format("the body has no usable value at {} ({})", pointer,
                           simdjson::error_message(error)));
}

bool is_integer(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return !token.empty() && token[0] != '0' &&
         std::all_of(token.begin(), token.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string text_of(double number) {
  constexpr double exact_max = 9007199254740992.0;  // below it every integer is a double
  if (std::trunc(number) == number && std::fabs(number) < exact_max)
    return fmt::format("{}", static_cast<std::int64_t>(number));
  return fmt::format("{}", number);
}

simdjson::error_code append_number(std::string& out, ondemand::value& value) {
  const std::string_view token = without_blanks(value.raw_json_token());
  ondemand::number number;
  if (const auto error = value.get_number().get(number)) {
    if (!is_integer(token)) return error;
    out += token;  // longer than 64 bits: its digits are its canonical spelling
    return simdjson::SUCCESS;
  }
  if (number.is_int64())
    out += std::to_string(number.get_int64());
  else if (number.is_uint64())
    out += std::to_string(number.get_uint64());
  else
    out += text_of(number.get_double());
  return simdjson::SUCCESS;
}

simdjson::error_code append_canonical(std::string& out, ondemand::value value, std::size_t depth);

simdjson::error_code append_object(std::string& out, ondemand::value& value, std::size_t depth) {
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return error;
  std::vector<std::pair<std::string, std::string>> members;
  for (auto field : object) {
    std::string_view name;
    ondemand::value member;
    if (const auto error = field.unescaped_key().get(name)) return error;
    std::string text;
    append_json_text(text, name);  // copied now: the next member overwrites it
    if (const auto error = field.value().get(member)) return error;
    members.emplace_back(std::move(text), std::string());
    if (const auto error = append_canonical(members.back().second, member, depth + 1)) return error;
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  out.push_back('{');
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i != 0) out.push_back(',');
    out += members[i].first;
    out.push_back(':');
    out += members[i].second;
  }
  out.push_back('}');
  return simdjson::SUCCESS;
}

simdjson::error_code append_array(std::string& out, ondemand::value& value, std::size_t depth) {
  ondemand::array array;
  if (const auto error = value.get_array().get(array)) return error;
  out.push_back('[');
  bool first = true;
  for (auto item : array) {
    ondemand::value element;
    if (const auto error = item.get(element)) return error;
    if (!first) out.push_back(',');
    first = false;
    if (const auto error = append_canonical(out, element, depth + 1)) return error;
  }
  out.push_back(']');
  return simdjson::SUCCESS;
}

simdjson::error_code append_canonical(std::string& out, ondemand::value value, std::size_t depth) {
  if (depth > depth_max) return simdjson::DEPTH_ERROR;
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return error;
  switch (type) {
    case ondemand::json_type::object: return append_object(out, value, depth);
    case ondemand::json_type::array: return append_array(out, value, depth);
    case ondemand::json_type::number: return append_number(out, value);
    case ondemand::json_type::string: {
      std::string_view text;
      if (const auto error = value.get_string().get(text)) return error;
      append_json_text(out, text);
      return simdjson::SUCCESS;
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      if (const auto error = value.get_bool().get(truth)) return error;
      out += truth ? "true" : "false";
      return simdjson::SUCCESS;
    }
    case ondemand::json_type::null: break;
  }
  bool is_null = false;
  if (const auto error = value.is_null().get(is_null)) return error;
  if (!is_null) return simdjson::INCORRECT_TYPE;
  out += "null";
  return simdjson::SUCCESS;
}

Result<ondemand::value> find(std::string_view pointer) {
  ondemand::value found;
  if (const auto error = thread_parser().document.at_pointer(pointer).get(found))
    return no_id(pointer, error);
  return found;
}

}  // namespace

bool is_json_pointer(std::string_view pointer) {
  if (pointer.empty() || pointer[0] != '/') return false;
  for (std::size_t i = 0; i < pointer.size(); ++i) {
    if (pointer[i] != '~') continue;
    if (i + 1 == pointer.size() || (pointer[i + 1] != '0' && pointer[i + 1] != '1')) return false;
  }
  return true;
}

Result<JsonFields> JsonFields::parse(std::string_view body) {
  if (body.empty()) return no_id("the body is empty");
  const simdjson::error_code error = thread_parser().parse(body);
  if (error == simdjson::MEMALLOC)
    return fail(Remedy::retry, "exhausted", "there is no memory to parse a JSON body");
  if (error) return no_id(fmt::format("the body is not JSON ({})", simdjson::error_message(error)));
  return JsonFields();
}

Result<std::string> JsonFields::scalar(std::string_view pointer) const {
  ondemand::value value = ONCE_TRY(find(pointer));
  ondemand::json_type type;
  if (const auto error = value.type().get(type)) return no_id(pointer, error);
  if (type == ondemand::json_type::string) {
    std::string_view text;
    if (const auto error = value.get_string().get(text)) return no_id(pointer, error);
    if (text.empty()) return no_id(fmt::format("the body has an empty string at {}", pointer));
    return std::string(text);
  }
  if (type != ondemand::json_type::number && type != ondemand::json_type::boolean)
    return no_id(fmt::format("the body has no string, number or boolean at {}", pointer));
  std::string text;
  if (const auto error = append_canonical(text, value, 0)) return no_id(pointer, error);
  return text;
}

Result<std::string> JsonFields::canonical(std::string_view pointer) const {
  const ondemand::value value = ONCE_TRY(find(pointer));
  std::string text;
  if (const auto error = append_canonical(text, value, 0)) return no_id(pointer, error);
  return text;
}

}  // namespace once
