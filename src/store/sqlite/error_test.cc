// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/error.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cerrno>
#include <string>

namespace once {
namespace {

struct Case {
  int code;
  SqliteStage stage;
  Remedy remedy;
  const char* tag;
  int system_error = 0;
};

TEST(SqliteError, every_code_has_one_remedy) {
  using Stage = SqliteStage;
  const Case cases[] = {
      {SQLITE_BUSY, Stage::statement, Remedy::retry, "busy"},
      {SQLITE_BUSY, Stage::commit, Remedy::retry, "busy"},
      {SQLITE_BUSY_SNAPSHOT, Stage::statement, Remedy::retry, "busy"},
      {SQLITE_BUSY_RECOVERY, Stage::open, Remedy::retry, "busy"},
      {SQLITE_LOCKED, Stage::statement, Remedy::retry, "busy"},
      {SQLITE_PROTOCOL, Stage::statement, Remedy::retry, "busy"},
      {SQLITE_SCHEMA, Stage::statement, Remedy::retry, "busy"},
      {SQLITE_INTERRUPT, Stage::commit, Remedy::retry, "busy"},
      {SQLITE_FULL, Stage::statement, Remedy::retry, "full"},
      {SQLITE_FULL, Stage::commit, Remedy::retry, "full"},
      {SQLITE_NOMEM, Stage::statement, Remedy::retry, "exhausted"},
      {SQLITE_IOERR, Stage::commit, Remedy::recheck, "io"},
      {SQLITE_IOERR_FSYNC, Stage::commit, Remedy::recheck, "io"},
      {SQLITE_IOERR_WRITE, Stage::commit, Remedy::recheck, "io"},
      {SQLITE_IOERR_WRITE, Stage::statement, Remedy::stop, "io"},
      {SQLITE_IOERR_READ, Stage::open, Remedy::stop, "io"},
      {SQLITE_CORRUPT, Stage::statement, Remedy::stop, "corrupt"},
      {SQLITE_CORRUPT_INDEX, Stage::statement, Remedy::stop, "corrupt"},
      {SQLITE_NOTADB, Stage::open, Remedy::stop, "foreign"},
      {SQLITE_CANTOPEN, Stage::open, Remedy::stop, "missing"},
      {SQLITE_CANTOPEN, Stage::open, Remedy::stop, "missing", ENOENT},
      {SQLITE_CANTOPEN, Stage::open, Remedy::retry, "exhausted", EMFILE},
      {SQLITE_CANTOPEN, Stage::statement, Remedy::retry, "exhausted", ENFILE},
      {SQLITE_CANTOPEN_ISDIR, Stage::open, Remedy::stop, "foreign"},
      {SQLITE_READONLY, Stage::statement, Remedy::stop, "denied"},
      {SQLITE_READONLY_DBMOVED, Stage::commit, Remedy::stop, "denied"},
      {SQLITE_PERM, Stage::open, Remedy::stop, "denied"},
      {SQLITE_CONSTRAINT_UNIQUE, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_CONSTRAINT_CHECK, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_CONSTRAINT_NOTNULL, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_CONSTRAINT_FOREIGNKEY, Stage::commit, Remedy::park, "constraint"},
      {SQLITE_CONSTRAINT_TRIGGER, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_MISMATCH, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_TOOBIG, Stage::statement, Remedy::park, "constraint"},
      {SQLITE_AUTH, Stage::statement, Remedy::stop, "sql"},
      {SQLITE_ERROR, Stage::statement, Remedy::stop, "sql"},
      {SQLITE_ERROR, Stage::values, Remedy::park, "constraint"},
      {SQLITE_ERROR_RETRY, Stage::values, Remedy::stop, "sql"},
      {SQLITE_MISUSE, Stage::values, Remedy::stop, "sql"},
      {SQLITE_MISUSE, Stage::statement, Remedy::stop, "sql"},
      {SQLITE_RANGE, Stage::statement, Remedy::stop, "sql"},
      {12345, Stage::statement, Remedy::stop, "sql"},
  };
  for (const Case& one : cases) {
    const Error error = error_from_sqlite({one.code, one.system_error, "native text"}, one.stage,
                                          "sqlite:a.db", "try");
    EXPECT_EQ(error.remedy, one.remedy) << one.code;
    EXPECT_EQ(error.tag, one.tag) << one.code;
    for (const char* part : {"sqlite:a.db", "try", "native text", "; "})
      EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
  }
}

}  // namespace
}  // namespace once
