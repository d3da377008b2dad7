// SPDX-License-Identifier: Apache-2.0
#include "store/sql/kept_values.h"

#include <variant>

namespace once {

std::string_view bytes_of(const Value& value) {
  if (const auto* text = std::get_if<std::string_view>(&value.variant())) return *text;
  if (const auto* blob = std::get_if<Blob>(&value.variant())) return blob->bytes;
  if (const auto* decimal = std::get_if<Decimal>(&value.variant())) return decimal->digits;
  return {};
}

KeptValues::KeptValues(std::span<const Value> values) {
  std::size_t size = 0;
  for (const Value& value : values) size += bytes_of(value).size();
  bytes_.reserve(size);
  values_.reserve(values.size());
  for (const Value& value : values) {
    const std::string_view bytes = bytes_of(value);
    const std::string_view kept(bytes_.data() + bytes_.size(), bytes.size());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    if (std::holds_alternative<std::string_view>(value.variant()))
      values_.emplace_back(kept);
    else if (std::holds_alternative<Blob>(value.variant()))
      values_.emplace_back(Blob{kept});
    else if (std::holds_alternative<Decimal>(value.variant()))
      values_.emplace_back(Decimal{kept});
    else
      values_.push_back(value);
  }
}

}  // namespace once
