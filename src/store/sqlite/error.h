// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

namespace once {

// What we were doing when SQLite answered with an error: only a commit leaves a doubt.
enum class SqliteStage : std::uint8_t { open, statement, commit };

// What an (extended) result code of SQLite means for us. `where` names the store, `what` says
// what we tried, `native` is SQLite's own text.
Error error_from_sqlite(int code, SqliteStage stage, std::string_view where, std::string_view what,
                        std::string_view native);

}  // namespace once
