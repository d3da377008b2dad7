// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/sql_text.h"

namespace once {

// A name that stands where a statement names what it writes or calls.
struct SqlName {
  std::string text;               // as it is written
  std::vector<std::string> path;  // without quotes: a schema, if there is one, and a name
  bool is_routine = false;        // behind CALL

  bool operator==(const SqlName&) const = default;
};

// All tables that a statement, or the body of a trigger or procedure, may write. Some of the names
// may be columns or aliases: who asks the database learns which are tables.
std::vector<SqlName> written_tables(std::string_view text, const SqlSyntax& syntax);

}  // namespace once
