// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <string>
#include <string_view>
#include <vector>

namespace once {

// A statement with `?` for each `:name` of the original, and the names in order.
struct NamedStatement {
  std::string text;
  std::vector<std::string> names;

  bool operator==(const NamedStatement&) const = default;
};

// Quoted text, quoted names, comments and casts (`::bigint`) are left alone. A `?` is refused,
// since it would be a parameter without a name; `??` is the question mark of an operator. So are a
// quote that is not closed and more than one statement.
[[nodiscard]] Result<NamedStatement> name_parameters(std::string_view statement,
                                                     SqlDialect dialect);

}  // namespace once
