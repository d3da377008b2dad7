// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace once {

// RFC 3339, "2026-11-16T01:43:10.250Z" or with an offset, in milliseconds since 1970; unset if it
// is none. What is finer than a millisecond is cut off.
[[nodiscard]] std::optional<std::int64_t> parse_timestamp_ms(std::string_view text);

}  // namespace once
