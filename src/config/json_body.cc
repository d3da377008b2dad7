// SPDX-License-Identifier: Apache-2.0
#include "config/json_body.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <string>

#include "model/json_parser.h"
#include "model/schema_frame.h"

namespace once {
namespace {

namespace ondemand = simdjson::ondemand;

tl::unexpected<Error> fail_json(simdjson::error_code error) {
  if (error == simdjson::MEMALLOC)
    return fail(Remedy::retry, "exhausted", "there is no memory to parse a JSON body");
  if (error == doubled_member) return fail_value(json_error_text(error));
  return fail_value(fmt::format("the body is not JSON ({})", json_error_text(error)));
}

std::string_view name_of(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::object: return "an object";
    case ondemand::json_type::array: return "a list";
    case ondemand::json_type::number: return "a number";
    case ondemand::json_type::string: return "a string";
    case ondemand::json_type::boolean: return "a boolean";
    case ondemand::json_type::null: break;
  }
  return "null";
}

Result<Cell> cell_of_number(ondemand::value& value, ValueType type) {
  const std::string_view token = without_blanks(value.raw_json_token());
  switch (type) {
    case ValueType::text:
    case ValueType::decimal:  // its own digits: no bit of money gets lost
      return cell_from_text(token, ValueType::decimal);
    case ValueType::integer:
    case ValueType::number:
    case ValueType::timestamp:
    case ValueType::milliseconds:
    case ValueType::json: return cell_from_text(token, type);
    case ValueType::boolean:
    case ValueType::bytes: break;
  }
  return fail_value(fmt::format("a number is no {}", once::name_of(type)));
}

Result<Cell> cell_of_boolean(ondemand::value& value, ValueType type) {
  bool truth = false;
  if (const auto error = value.get_bool().get(truth)) return fail_json(error);
  if (type == ValueType::boolean) return Cell(std::int64_t{truth});
  if (type == ValueType::text || type == ValueType::json)
    return Cell(std::string(truth ? "true" : "false"));
  return fail_value(fmt::format("a boolean is no {}", once::name_of(type)));
}

Result<Cell> cell_of_json(ondemand::value& value) {
  std::string_view text;
  if (const auto error = simdjson::to_json_string(value).get(text)) return fail_json(error);
  return cell_from_text(without_blanks(text), ValueType::json);
}

Result<Cell> cell_of(ondemand::value& value, ValueType type) {
  ondemand::json_type found;
  if (const auto error = value.type().get(found)) return fail_json(error);
  if (found == ondemand::json_type::null) {
    bool is_null = false;
    if (const auto error = value.is_null().get(is_null)) return fail_json(error);
    if (is_null) return Cell(nullptr);
    return fail_json(simdjson::N_ATOM_ERROR);
  }
  if (found == ondemand::json_type::number) return cell_of_number(value, type);
  if (found == ondemand::json_type::boolean) return cell_of_boolean(value, type);
  if (type == ValueType::json) return cell_of_json(value);
  if (found != ondemand::json_type::string)
    return fail_value(fmt::format("{} is no {}", name_of(found), once::name_of(type)));
  std::string_view text;
  if (const auto error = value.get_string().get(text)) return fail_json(error);
  return cell_from_json_string(text, type);
}

}  // namespace

// The buffers stay from one message to the next.
JsonParser& JsonBody::thread_parser(Part part) {
  thread_local std::array<JsonParser, 2> own;
  return own[static_cast<std::size_t>(part)];
}

Result<JsonBody> JsonBody::parse(std::string_view body) {
  if (body.data() == nullptr) return fail_value("the message has no body");
  if (body.empty()) return fail_value("the body is empty, not JSON");
  if (is_framed_binary(body)) return fail_value(std::string(framed_binary_text));
  const auto error = thread_parser(Part::body).parse(without_schema_frame(body));
  if (error) return fail_json(error);
  return JsonBody(Part::body);
}

// Inside of a list even a number has a pointer.
Result<JsonBody> JsonBody::parse_element(std::string_view text) {
  const auto error = thread_parser(Part::element).find_tokens(fmt::format("[{}]", text));
  if (error) return fail_json(error);
  return JsonBody(Part::element);
}

Result<std::optional<std::vector<std::string>>> JsonBody::elements(std::string_view pointer) const {
  std::vector<std::string> found;
  bool is_array = true;
  const auto split = [&](ondemand::array array) -> simdjson::error_code {
    for (auto item : array) {
      ondemand::value value;
      if (const auto error = item.get(value)) return error;
      std::string_view text;
      if (const auto error = simdjson::to_json_string(value).get(text)) return error;
      found.emplace_back(without_blanks(text));
      if (found.size() > elements_max) return simdjson::CAPACITY;
    }
    return simdjson::SUCCESS;
  };
  const auto split_if_array = [&](auto& of) -> simdjson::error_code {
    ondemand::json_type type;
    if (const auto error = of.type().get(type)) return error;
    is_array = type == ondemand::json_type::array;
    ondemand::array array;
    if (is_array)
      if (const auto error = of.get_array().get(array)) return error;
    return is_array ? split(array) : simdjson::SUCCESS;
  };
  ondemand::document& document = thread_parser(part_).document;
  document.rewind();
  const auto error =
      pointer.empty() ? split_if_array(document) : use_value_at(document, pointer, split_if_array);
  if (error == simdjson::NO_SUCH_FIELD) return std::nullopt;
  if (error == simdjson::CAPACITY)
    return fail_value(fmt::format("an array has more than {} elements", elements_max));
  if (error) return fail_json(error);
  if (!is_array) return fail_value("it is not an array");
  return found;
}

Result<std::optional<Cell>> JsonBody::at(std::string_view pointer, ValueType type) const {
  Result<Cell> cell = Cell(nullptr);
  ondemand::document& document = thread_parser(part_).document;
  const std::string place = part_ == Part::element ? fmt::format("/0{}", pointer) : "";
  const auto error =
      use_value_at(document, part_ == Part::element ? place : pointer, [&](ondemand::value& value) {
        cell = cell_of(value, type);
        return simdjson::SUCCESS;
      });
  if (error == simdjson::NO_SUCH_FIELD) return std::nullopt;
  // What is wrong with the value itself says more, unless it is not known which value is meant.
  if (error && (cell || error == doubled_member)) return fail_json(error);
  return ONCE_TRY(std::move(cell));
}

}  // namespace once
