// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace once {

// A statement touched another number of rows than its message expects.
[[nodiscard]] Error unmet_expectation(std::string_view where, std::string_view statement,
                                      std::int64_t rows, const Expect& expect,
                                      std::optional<std::size_t> message);

// A write that the database refuses belongs to the message on whose behalf it was made.
[[nodiscard]] Error blamed_on(std::optional<std::size_t> message, Error error);

}  // namespace once
