// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string_view>

namespace once {

// As JSON writes numbers: -12, 1.50, 3e8.
[[nodiscard]] bool is_decimal(std::string_view text);

// Two decimals by their value, exactly: 1.50 equals 1.5, and no digit is too small to count.
[[nodiscard]] std::strong_ordering compare_decimals(std::string_view a, std::string_view b);

}  // namespace once
