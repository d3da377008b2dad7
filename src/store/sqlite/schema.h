// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/sqlite/connection.h"

namespace once {

// The steps by which the schema grew: step N makes version N + 1 out of version N. A step that
// was released is never changed; a new database takes all of them.
extern const std::array<std::string_view, 8> schema_steps;

// Finds the name of something that is in the place of one of our tables.
[[nodiscard]] std::string foreign_table_query();

// What the steps call. SQLite's code.
[[nodiscard]] int add_schema_functions(sqlite3* handle);

// Brings the schema of an open writer to the newest version, in one transaction. A database of a
// newer Once is refused with the tag "newer". Answers the version it found; 0: there was none.
[[nodiscard]] Result<std::int64_t> migrate(Connection& writer, std::int64_t now_ms);

}  // namespace once
