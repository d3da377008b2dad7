// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/equal_writes.h"

#include <simdjson.h>

#include <utility>
#include <variant>

namespace once {
namespace {

// Arrays are of texts: bytes are written in the form of the type of bytes, which means something
// else for another. What is no text is refused with the whole array, and then nobody could say
// whose it was.
bool fits(const Value& value, const ParameterType& type) {
  if (std::holds_alternative<Blob>(value.variant())) return type.is_bytes;
  const auto* text = std::get_if<std::string_view>(&value.variant());
  return text == nullptr || simdjson::validate_utf8(text->data(), text->size());
}

}  // namespace

void EqualWrites::add(std::span<const Value> values, SqlConnection::Then then) {
  rows_.emplace_back(values);
  thens_.push_back(std::move(then));
  bytes_ += rows_.back().bytes();
}

bool EqualWrites::fit(std::span<const ParameterType> types) const {
  for (const KeptValues& row : rows_)
    for (std::size_t i = 0; i < parameters_; ++i)
      if (!fits(row.values()[i], types[i])) return false;
  return true;
}

Parameters EqualWrites::arrays() const {
  Parameters made;
  for (std::size_t i = 0; i < parameters_; ++i) made.add_array(rows_, i);
  return made;
}

}  // namespace once
