// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace once {

// The first moment of the year 1 and the last one of 9999, in UTC: what every database can hold.
inline constexpr std::int64_t timestamp_us_min = -62'135'596'800'000'000;
inline constexpr std::int64_t timestamp_us_max = 253'402'300'799'999'999;

// RFC 3339, "2026-11-16T01:43:10.250Z" or with an offset, in microseconds since 1970; unset if it
// is none, or outside of those limits. What is finer than a microsecond is cut off.
[[nodiscard]] std::optional<std::int64_t> parse_timestamp_us(std::string_view text);
// The same as databases write it: the offset may lack its minutes, and all of it means UTC.
[[nodiscard]] std::optional<std::int64_t> parse_stored_timestamp_us(std::string_view text);
// From milliseconds; unset if it is outside of the limits.
[[nodiscard]] std::optional<std::int64_t> timestamp_us_of_ms(std::int64_t ms);
// In whole milliseconds, cut off towards the past.
[[nodiscard]] std::int64_t timestamp_ms_of_us(std::int64_t us);
// "2026-11-16 01:43:10.250000" in UTC.
[[nodiscard]] std::string timestamp_text(std::int64_t us);

}  // namespace once
