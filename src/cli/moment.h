// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace once::cli {

// How a time is written on the command line, for help and errors.
inline constexpr const char* moment_forms = "2026-11-16T08:00:00Z or -90s, -15m, -1h, -2d";

// Milliseconds since 1970; unset if the text is not such a time.
[[nodiscard]] std::optional<std::int64_t> parse_moment(const std::string& text,
                                                       std::int64_t now_ms);

// A whole number; unset if the text is none.
[[nodiscard]] std::optional<std::int64_t> number_in(const std::string& text);

}  // namespace once::cli
