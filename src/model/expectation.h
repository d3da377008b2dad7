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

// What the database says of a handler's statement belongs to the message on whose behalf it was
// run: a write that it refuses spoils this message; anything else may come from its values or not.
[[nodiscard]] Error blamed_on(std::optional<std::size_t> message, Error error);

}  // namespace once
