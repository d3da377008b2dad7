// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string_view>

#include "store/sql/connection.h"

namespace once {

// The one place that says what an error number of MySQL or MariaDB (of the server, or of the client
// library) means for us.
Error error_from_mysql(unsigned code, SqlStage stage, std::string_view where, std::string_view what,
                       std::string_view native);

}  // namespace once
