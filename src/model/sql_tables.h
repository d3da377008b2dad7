// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/sql_text.h"

namespace once {

// A name that stands where a statement names what it writes or calls.
struct SqlName {
  std::string text;  // as it is written
  // Without quotes and as the server folds it: a schema, if there is one, and a name.
  std::vector<std::string> path;
  bool is_routine = false;  // behind CALL, or before a bracket

  bool operator==(const SqlName&) const = default;
};

// All tables that a statement, or the body of a trigger or routine, may write, and all routines
// that it may call. Some of the names may be columns, aliases or types: who asks the database
// learns what they are.
std::vector<SqlName> written_tables(std::string_view text, const SqlSyntax& syntax);

}  // namespace once
