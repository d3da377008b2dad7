// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/connection.h"

namespace once {

// The steps by which the schema grew: step N makes version N + 1 out of version N. A step that was
// released is never changed; a new database takes all of them.
extern const std::array<std::string_view, 5> postgres_schema_steps;

// The tables that these steps make.
std::vector<std::string> postgres_own_tables();

// Refuses what is in the place of one of them in a database that has none of ours.
[[nodiscard]] Status check_no_foreign_tables(PgConnection& connection, std::string_view where);

// Brings the schema to the newest version, in one transaction that only one program runs at a time.
// A database of a newer Once is refused with the tag "newer".
[[nodiscard]] Status migrate_postgres(PgConnection& connection, std::string_view where);

}  // namespace once
