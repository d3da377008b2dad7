// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <string>
#include <string_view>

namespace once {

// The word that a statement begins with, behind comments and brackets; empty if there is none.
std::string first_keyword(std::string_view statement, SqlDialect dialect);

// Refuses what a handler may not do: end the transaction, write the books of Once or make them hard
// to find, or change the session, which the other messages of a batch share. On MySQL that is
// everything that is not known to leave the transaction open, since many statements commit it by
// themselves.
[[nodiscard]] Status check_handler_statement(std::string_view statement, SqlDialect dialect);

// After it the session may not be what it was: a variable, a temporary table, a lock, or what a
// procedure has set. What a function of the database does is not seen.
bool may_change_session(std::string_view statement, SqlDialect dialect);

}  // namespace once
