// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace once {
namespace {

constexpr std::uint32_t bytea_type = 17;
constexpr std::uint32_t bigint_type = 20;

template <class T>
void append_big_endian(std::string& into, T number) {
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8)
    into += static_cast<char>(static_cast<std::make_unsigned_t<T>>(number) >> shift & 0xff);
}

// One dimension, counted from 1.
std::string begin_array(std::uint32_t type, std::size_t count, bool has_nulls) {
  std::string array;
  append_big_endian(array, std::uint32_t{count == 0 ? 0u : 1u});
  append_big_endian(array, std::uint32_t{has_nulls ? 1u : 0u});
  append_big_endian(array, type);
  if (count == 0) return array;
  append_big_endian(array, static_cast<std::uint32_t>(count));
  append_big_endian(array, std::uint32_t{1});
  return array;
}

}  // namespace

bool has_zero_in_text(std::span<const Value> values) {
  return std::any_of(values.begin(), values.end(), [](const Value& value) {
    const auto* text = std::get_if<std::string_view>(&value.variant());
    return text != nullptr && text->find('\0') != std::string_view::npos;
  });
}

Parameters::Parameters(std::span<const Value> values) {
  for (const Value& value : values) add(value);
}

void Parameters::add(const Value& value) {
  std::visit(
      [this](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::nullptr_t>)
          add_null();
        else if constexpr (std::is_same_v<Held, Blob>)
          add_binary(std::string(held.bytes));
        else if constexpr (std::is_same_v<Held, Decimal>)
          add_text(std::string(held.digits));
        else
          add_text(fmt::format("{}", held));
      },
      value.variant());
}

void Parameters::add_null() {
  values_.push_back(nullptr);
  lengths_.push_back(0);
  formats_.push_back(0);
}

void Parameters::add_text(std::string text) {
  owned_.push_back(std::move(text));
  values_.push_back(owned_.back().c_str());
  lengths_.push_back(static_cast<int>(owned_.back().size()));
  formats_.push_back(0);
}

void Parameters::add_binary(std::string bytes) {
  owned_.push_back(std::move(bytes));
  values_.push_back(owned_.back().data());
  lengths_.push_back(static_cast<int>(owned_.back().size()));
  formats_.push_back(1);
}

void Parameters::add_array(std::span<const std::int64_t> numbers) {
  std::string array = begin_array(bigint_type, numbers.size(), false);
  for (const std::int64_t number : numbers) {
    append_big_endian(array, std::uint32_t{8});
    append_big_endian(array, number);
  }
  add_binary(std::move(array));
}

void Parameters::add_array(std::span<const std::string_view> bytes) {
  bool has_nulls = false;
  for (const std::string_view piece : bytes) has_nulls = has_nulls || piece.data() == nullptr;
  std::string array = begin_array(bytea_type, bytes.size(), has_nulls);
  for (const std::string_view piece : bytes) {
    append_big_endian(array, piece.data() == nullptr ? std::int32_t{-1}
                                                     : static_cast<std::int32_t>(piece.size()));
    array += piece;
  }
  add_binary(std::move(array));
}

}  // namespace once
