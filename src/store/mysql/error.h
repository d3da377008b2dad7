// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string_view>

#include "store/sql/connection.h"

namespace once {

// What MySQL or MariaDB says of an error: the server, or the client library.
struct MysqlFailure {
  unsigned code;
  std::string_view state = {};  // SQL state, five characters; empty: not known
  std::string_view text = {};
  // The connection is there: only the statement failed, and its number may be one that SIGNAL has
  // made up.
  bool goes_on = false;
};

// Whether this is what the client library or the server says when the connection is gone.
[[nodiscard]] bool is_about_connection(unsigned code);

// The one place that says what that means for us.
Error error_from_mysql(const MysqlFailure& failure, SqlStage stage, std::string_view where,
                       std::string_view what);

}  // namespace once
