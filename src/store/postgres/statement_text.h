// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/sql_text.h"

namespace once {

// A statement with `?` as PostgreSQL wants it, with $1, $2, ... `??` is a question mark, of the
// JSON operators.
struct StatementText {
  std::string text;
  std::size_t parameters = 0;
};
StatementText number_parameters(std::string_view statement);

}  // namespace once
