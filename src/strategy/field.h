// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <compare>
#include <string>
#include <variant>

namespace once {

// The same value, as it would be read from a database.
inline Field field_of(const Value& value) {
  struct Reader {
    Field operator()(std::nullptr_t) const { return nullptr; }
    Field operator()(std::int64_t number) const { return number; }
    Field operator()(double number) const { return number; }
    Field operator()(std::string_view text) const { return std::string(text); }
    Field operator()(Blob blob) const { return std::string(blob.bytes); }
    Field operator()(Decimal decimal) const { return std::string(decimal.digits); }
  };
  return std::visit(Reader{}, value.variant());
}

// The same value, to be bound; it refers to the field.
inline Value value_of(const Field& field) {
  return std::visit([](const auto& stored) { return Value(stored); }, field);
}

// An order of all values, the same for everyone: by type, then by value.
inline bool comes_before(const Field& a, const Field& b) {
  if (a.index() != b.index()) return a.index() < b.index();
  if (const auto* number = std::get_if<double>(&a))
    return std::strong_order(*number, std::get<double>(b)) < 0;
  if (const auto* number = std::get_if<std::int64_t>(&a))
    return *number < std::get<std::int64_t>(b);
  if (const auto* text = std::get_if<std::string>(&a)) return *text < std::get<std::string>(b);
  return false;
}

}  // namespace once
