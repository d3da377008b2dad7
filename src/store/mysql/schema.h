// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "store/sql/connection.h"

namespace once {

// Makes the tables, or brings them to the newest version; one program at a time. Every step can be
// repeated, since this database commits each by itself. A schema of a newer Once is refused with
// the tag "newer".
[[nodiscard]] Status migrate_mysql(SqlConnection& connection, std::string_view where);

}  // namespace once
