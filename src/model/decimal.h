// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace once {

// Numbers as JSON writes them (-12, 1.50, 3e8), by their digits: nothing is rounded to a double.

// How a number is written where equal numbers must be equal texts: all digits count, and 1.50 and
// 15e-1 are the same. Each spelling is kept in stores and must not change.
enum class NumberSpelling : std::uint8_t {
  plain,       // 1.5, 100, 1e-05: in ids
  scientific,  // 15e-1, 1e2, 1e-5: in fingerprints
};

[[nodiscard]] bool is_decimal(std::string_view text);

// Two decimals by their value, exactly: 1.50 equals 1.5, and no digit is too small to count.
[[nodiscard]] std::strong_ordering compare_decimals(std::string_view a, std::string_view b);

// Appends a decimal in this spelling. False, and nothing is appended, if its exponent is so large
// that the spelling has no room for it.
[[nodiscard]] bool append_decimal(std::string& out, std::string_view text, NumberSpelling spelling);

// The largest exponent of a plain number, up or down, unless more digits than that are written.
inline constexpr std::int64_t plain_exponent_max = 1000;

}  // namespace once
