// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace once {

// A statement with `?` as PostgreSQL wants it, with $1, $2, ... What stands in quotes, comments and
// dollar quotes is left alone; `??` is a question mark (of the JSON operators).
struct StatementText {
  std::string text;
  std::size_t parameters = 0;
};
StatementText number_parameters(std::string_view statement);

// Refuses what a handler may not do: end the transaction, or change the books of Once.
[[nodiscard]] Status check_handler_statement(std::string_view statement);

}  // namespace once
