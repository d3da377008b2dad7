// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace once {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

// The value of each byte as a digit of either case; -1: it is none.
inline constexpr std::array<signed char, 256> hex_values = [] {
  std::array<signed char, 256> values{};
  for (signed char& value : values) value = -1;
  for (std::size_t i = 0; i < hex_digits.size(); ++i) {
    const auto digit = static_cast<unsigned char>(hex_digits[i]);
    values[digit] = static_cast<signed char>(i);
    if (i >= 10) values[digit - 'a' + 'A'] = static_cast<signed char>(i);
  }
  return values;
}();

constexpr int hex_value(char digit) { return hex_values[static_cast<unsigned char>(digit)]; }

// The byte of two digits; negative if one of them is none.
constexpr int hex_byte(char high, char low) {
  const int a = hex_value(high);
  const int b = hex_value(low);
  return (a | b) < 0 ? -1 : a << 4 | b;
}

// Two digits for each byte, which mean nothing to any parser.
inline void append_hex(std::string& into, std::string_view bytes) {
  for (const char byte : bytes) {
    into += hex_digits[static_cast<unsigned char>(byte) >> 4];
    into += hex_digits[static_cast<unsigned char>(byte) & 15];
  }
}

}  // namespace once
