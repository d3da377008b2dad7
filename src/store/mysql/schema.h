// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "store/sql/connection.h"

namespace once {

// One change of the schema. This database commits each by itself: a program that dies in between
// leaves some of them made, and the next one goes on from there.
struct MysqlChange {
  std::string_view statement;
  // Finds a row where the change was made before; empty: the statement may be repeated.
  std::string_view made = {};
};

// The steps by which the schema grew: step N makes version N + 1 out of version N. A step that was
// released is never changed; a new database takes all of them.
using MysqlStep = std::span<const MysqlChange>;
extern const std::span<const MysqlStep> mysql_schema_steps;

// Refuses what is in the place of one of our tables in a database that has none of them.
[[nodiscard]] Status check_no_foreign_tables(SqlConnection& connection, std::string_view where);

// Brings the schema to the newest version; one program at a time. A schema of a newer Once is
// refused with the tag "newer".
[[nodiscard]] Status migrate_mysql(SqlConnection& connection, std::string_view where,
                                   std::span<const MysqlStep> steps = mysql_schema_steps);

}  // namespace once
