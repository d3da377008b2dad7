// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "config/plan.h"

namespace once {

struct Bytes {
  std::string bytes;

  bool operator==(const Bytes&) const = default;
};

// What a value of a message is. A boolean is 0 or 1, a decimal its digits, a timestamp microseconds
// since 1970.
using Cell = std::variant<std::nullptr_t, std::int64_t, double, std::string, Bytes>;

// All errors have the tag "value" and the remedy `park`, and say what is wrong with the text.

// Bytes of a message (key, header, body), or a text of the file, as a value of this type.
[[nodiscard]] Result<Cell> cell_from_text(std::string_view text, ValueType type);
// The same for a string inside JSON, where bytes are written in base64.
[[nodiscard]] Result<Cell> cell_from_json_string(std::string_view text, ValueType type);

// What a database answered.
[[nodiscard]] Result<Cell> cell_from_field(const Field& field, ValueType type);

[[nodiscard]] tl::unexpected<Error> fail_value(std::string text);
[[nodiscard]] std::string_view name_of(ValueType type);

// Bound to a statement; refers to the cell. A timestamp is milliseconds.
[[nodiscard]] Value value_of(const Cell& cell, ValueType type);
// As text: for a key, a header or a body. A timestamp is milliseconds.
[[nodiscard]] std::string text_of(const Cell& cell, ValueType type);
// Two values of this type, neither of them null: numbers by their value, text by its bytes.
[[nodiscard]] std::strong_ordering compare(const Cell& a, const Cell& b, ValueType type);
// As JSON.
void append_json(std::string& out, const Cell& cell, ValueType type);

}  // namespace once
