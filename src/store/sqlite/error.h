// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

struct sqlite3;

namespace once {

// What we were doing when SQLite answered with an error: only a commit leaves a doubt. `values`: it
// ran a statement that compiles, so that a plain error is about the values (malformed JSON, an
// overflow).
enum class SqliteStage : std::uint8_t { open, statement, values, commit };

// What SQLite says of an error.
struct SqliteFailure {
  int code;              // an (extended) result code
  int system_error = 0;  // what the system said (errno), if a file could not be opened
  std::string_view text;
};

// Of the last call of a connection; null: it could not even be made.
SqliteFailure failure_of(int code, sqlite3* handle);

// What that means for us. `where` names the store, `what` says what we tried.
Error error_from_sqlite(const SqliteFailure& failure, SqliteStage stage, std::string_view where,
                        std::string_view what);

}  // namespace once
