// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string_view>

#include "store/sql/connection.h"

namespace once {

// The one place that says what a state of PostgreSQL (five characters; empty: the connection is
// gone) means for us. `goes_on`: the server says that only the statement failed, and the session
// is there; the state may be one that a function has made up.
Error error_from_postgres(std::string_view state, SqlStage stage, std::string_view where,
                          std::string_view what, std::string_view native, bool goes_on = false);

// The same for a connection that was not made, for which libpq gives a text but no state.
Error error_from_connect(std::string_view where, std::string_view native);

}  // namespace once
