// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "config/plan.h"

namespace once {

// Why no value of this rule can be bound where a database wants this type, and what to write
// instead; empty: some can. `database_type` is a name of PostgreSQL, the one database that says
// what it wants; of another name, or none, nothing is known. docs/run.md has the table.
[[nodiscard]] std::string reason_not_bindable(const ValueRule& rule,
                                              std::string_view database_type);

}  // namespace once
