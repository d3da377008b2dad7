// SPDX-License-Identifier: Apache-2.0
#include "config/cell.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/base64.h"
#include "config/timestamp.h"
#include "model/decimal.h"
#include "model/json_text.h"

namespace once {
namespace {

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// RFC 3339, or milliseconds since 1970.
std::optional<std::int64_t> moment_in(std::string_view text) {
  if (const auto ms = whole_number<std::int64_t>(text)) return timestamp_us_of_ms(*ms);
  return parse_timestamp_us(text);
}

Cell cell_of_moment(std::int64_t us, ValueType type) {
  return type == ValueType::timestamp ? us : timestamp_ms_of_us(us);
}

tl::unexpected<Error> does_not_fit(std::string_view text, ValueType type) {
  constexpr std::size_t shown_max = 60;  // the reason is kept with the message, which has all of it
  // What follows may be no text at all, and the reason must be one.
  std::string shown;
  for (const char byte : text.substr(0, shown_max))
    shown += static_cast<unsigned char>(byte) >= 0x20 && static_cast<unsigned char>(byte) < 0x7f
                 ? byte
                 : '?';
  return fail_value(
      fmt::format("\"{}{}\" is no {}", shown, text.size() > shown_max ? "…" : "", name_of(type)));
}

}  // namespace

tl::unexpected<Error> fail_value(std::string text) {
  return fail(Remedy::park, "value", std::move(text));
}

std::string_view name_of(ValueType type) {
  switch (type) {
    case ValueType::text: return "text";
    case ValueType::integer: return "integer of 64 bits";
    case ValueType::number: return "number";
    case ValueType::decimal: return "decimal number";
    case ValueType::boolean: return "boolean";
    case ValueType::bytes: return "base64";
    case ValueType::json: return "JSON";
    case ValueType::timestamp:
    case ValueType::milliseconds: return "time between the years 1 and 9999";
  }
  return "?";
}

Result<Cell> cell_from_text(std::string_view text, ValueType type) {
  switch (type) {
    case ValueType::text:
      if (simdjson::validate_utf8(text.data(), text.size())) return Cell(std::string(text));
      break;
    case ValueType::integer:
      if (const auto number = whole_number<std::int64_t>(text)) return Cell(*number);
      break;
    case ValueType::number:
      if (const auto number = whole_number<double>(text); number && std::isfinite(*number))
        return Cell(*number);
      break;
    case ValueType::decimal:
      if (is_decimal(text)) return Cell(std::string(text));
      break;
    case ValueType::boolean:
      if (text == "true" || text == "false") return Cell(std::int64_t{text == "true"});
      break;
    case ValueType::bytes: return Cell(Bytes{std::string(text)});
    case ValueType::json:
      if (nlohmann::json::accept(text)) return Cell(std::string(text));
      break;
    case ValueType::timestamp:
    case ValueType::milliseconds:
      if (const auto moment = moment_in(text)) return cell_of_moment(*moment, type);
      break;
  }
  return does_not_fit(text, type);
}

Result<Cell> cell_from_json_string(std::string_view text, ValueType type) {
  switch (type) {
    case ValueType::text: return Cell(std::string(text));  // JSON is UTF-8
    case ValueType::bytes:
      if (auto bytes = decode_base64(text)) return Cell(Bytes{std::move(*bytes)});
      return does_not_fit(text, type);
    case ValueType::timestamp:
    case ValueType::milliseconds:
      if (const auto moment = parse_timestamp_us(text)) return cell_of_moment(*moment, type);
      return does_not_fit(text, type);
    case ValueType::decimal: return cell_from_text(text, type);
    case ValueType::integer:
    case ValueType::number:
    case ValueType::boolean:
    case ValueType::json: break;
  }
  return fail_value(fmt::format("a string is no {}", name_of(type)));
}

Result<Cell> cell_from_field(const Field& field, ValueType type) {
  if (std::holds_alternative<std::nullptr_t>(field)) return Cell(nullptr);
  const bool is_moment = type == ValueType::timestamp || type == ValueType::milliseconds;
  if (const auto* text = std::get_if<std::string>(&field)) {
    if (!is_moment) return cell_from_text(*text, type);
    if (const auto moment = parse_stored_timestamp_us(*text)) return cell_of_moment(*moment, type);
    return does_not_fit(*text, type);
  }
  const auto* number = std::get_if<std::int64_t>(&field);
  if (type == ValueType::boolean && number != nullptr && (*number == 0 || *number == 1))
    return Cell(*number);
  const std::string digits =
      number != nullptr ? fmt::format("{}", *number) : fmt::format("{}", std::get<double>(field));
  if (type == ValueType::bytes || type == ValueType::boolean) return does_not_fit(digits, type);
  return cell_from_text(digits, type);
}

Value value_of(const Cell& cell, ValueType type) {
  if (const auto* digits = std::get_if<std::string>(&cell);
      digits != nullptr && type == ValueType::decimal)
    return Decimal{*digits};
  if (const auto* moment = std::get_if<std::int64_t>(&cell);
      moment != nullptr && type == ValueType::timestamp)
    return timestamp_ms_of_us(*moment);
  struct Binder {
    Value operator()(std::nullptr_t) const { return nullptr; }
    Value operator()(std::int64_t number) const { return number; }
    Value operator()(double number) const { return number; }
    Value operator()(const std::string& text) const { return text; }
    Value operator()(const Bytes& bytes) const { return Blob{bytes.bytes}; }
  };
  return std::visit(Binder{}, cell);
}

std::string text_of(const Cell& cell, ValueType type) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* bytes = std::get_if<Bytes>(&cell)) return bytes->bytes;
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  const auto* number = std::get_if<std::int64_t>(&cell);
  if (number == nullptr) return {};
  if (type == ValueType::boolean) return *number != 0 ? "true" : "false";
  if (type == ValueType::timestamp) return fmt::format("{}", timestamp_ms_of_us(*number));
  return fmt::format("{}", *number);
}

std::strong_ordering compare(const Cell& a, const Cell& b, ValueType type) {
  const auto order = [](auto less, auto greater) {
    return less ? std::strong_ordering::less
                : (greater ? std::strong_ordering::greater : std::strong_ordering::equal);
  };
  if (const auto* number = std::get_if<std::int64_t>(&a))
    return *number <=> std::get<std::int64_t>(b);
  if (const auto* number = std::get_if<double>(&a))
    return order(*number<std::get<double>(b), *number> std::get<double>(b));
  if (const auto* bytes = std::get_if<Bytes>(&a)) return bytes->bytes <=> std::get<Bytes>(b).bytes;
  const auto& text = std::get<std::string>(a);
  const auto& other = std::get<std::string>(b);
  return type == ValueType::decimal ? compare_decimals(text, other) : text <=> other;
}

void append_json(std::string& out, const Cell& cell, ValueType type) {
  if (std::holds_alternative<std::nullptr_t>(cell)) {
    out += "null";
  } else if (const auto* bytes = std::get_if<Bytes>(&cell)) {
    append_json_text(out, encode_base64(bytes->bytes));
  } else if (type == ValueType::text) {
    append_json_text(out, std::get<std::string>(cell));
  } else {
    out += text_of(cell, type);
  }
}

}  // namespace once
