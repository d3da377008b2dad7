// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/set_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/hex.h"

namespace once {
namespace {

// In quotes, which a text could end: both are escaped.
void append_quoted(std::string& into, std::string_view text) {
  into += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') into += '\\';
    into += c;
  }
  into += '"';
}

void append_bytes(std::string& into, std::string_view bytes) {
  into += "\"\\\\x";
  append_hex(into, bytes);
  into += '"';
}

void append_element(std::string& into, const Value& value) {
  std::visit(
      [&into](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>)
          into += "NULL";
        else if constexpr (std::is_same_v<Held, Blob>)
          append_bytes(into, held.bytes);
        else if constexpr (std::is_same_v<Held, std::string_view>)
          append_quoted(into, held);
        else if constexpr (std::is_same_v<Held, Decimal>)
          append_quoted(into, held.digits);
        else
          fmt::format_to(std::back_inserter(into), "{}", held);
      },
      value.variant());
}

bool is_integer(const Value& value) {
  return std::holds_alternative<std::int64_t>(value.variant());
}

bool fits(const Value& value, const ParameterType& type) {
  return type.is_bytes || !std::holds_alternative<Blob>(value.variant());
}

}  // namespace

std::string array_literal(const std::vector<Value>& values) {
  std::string array = "{";
  for (const Value& value : values) {
    if (array.size() > 1) array += ',';
    append_element(array, value);
  }
  return array + '}';
}

std::string set_update(const KeyedUpdate& update, std::span<const ParameterType> types) {
  const auto name_of = [](std::size_t i) { return fmt::format("once_v.once_p{}", i + 1); };
  std::string arrays;
  std::string names;
  for (std::size_t i = 0; i < types.size(); ++i) {
    arrays += fmt::format("{}${}::{}[]", i == 0 ? "" : ", ", i + 1, types[i].name);
    names += fmt::format("once_p{}, ", i + 1);
  }
  return fmt::format(
      "UPDATE {} SET {} FROM unnest({}) WITH ORDINALITY AS once_v ({}once_n) WHERE {} "
      "RETURNING once_v.once_n",
      update.table, update.set_with(name_of), arrays, names, update.where_with(name_of));
}

std::optional<Waves> waves_of(ValueRows rows, std::span<const ParameterType> types,
                              std::span<const SetKey> keys) {
  for (const auto& row : rows)
    for (std::size_t i = 0; i < types.size(); ++i)
      if (!fits(row[i], types[i])) return std::nullopt;
  std::optional<Waves> best;
  for (const SetKey& key : keys) {
    auto waves = cut_into_waves(rows, key.parameter, key.kind);
    if (!waves || waves->together.empty()) continue;
    if (!best ||
        waves->rest.size() + waves->together.size() < best->rest.size() + best->together.size())
      best = std::move(waves);
  }
  return best;
}

Parameters set_parameters(ValueRows rows, std::span<const std::size_t> wave,
                          std::span<const ParameterType> types) {
  Parameters made;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto is_number = [&](std::size_t row) { return is_integer(rows[row][i]); };
    if (types[i].is_bigint && std::all_of(wave.begin(), wave.end(), is_number)) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(wave.size());
      for (const std::size_t row : wave)
        numbers.push_back(std::get<std::int64_t>(rows[row][i].variant()));
      made.add_array(numbers);
      continue;
    }
    std::vector<Value> values;
    values.reserve(wave.size());
    for (const std::size_t row : wave) values.push_back(rows[row][i]);
    made.add(array_literal(values));
  }
  return made;
}

}  // namespace once
