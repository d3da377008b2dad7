// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/error.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

namespace once {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

// SQLite has one code for whatever is in the way of opening a file.
Meaning meaning_of_unopened(int system_error) {
  if (system_error == EMFILE || system_error == ENFILE)
    return {Remedy::retry, "exhausted", "too many files are open; raise the limit (ulimit -n)"};
  return {Remedy::stop, "missing", "check that the directory exists and may be written"};
}

constexpr Meaning refused{Remedy::park, "constraint", "the database refuses this write"};

Meaning meaning_of(const SqliteFailure& failure, SqliteStage stage) {
  const int code = failure.code;
  if (code == SQLITE_ERROR && stage == SqliteStage::values) return refused;
  if (code == SQLITE_CANTOPEN_ISDIR) return {Remedy::stop, "foreign", "this is a directory"};
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return {Remedy::retry, "busy", "another process is writing to this file; try again"};
    case SQLITE_SCHEMA:
    case SQLITE_INTERRUPT:
    case SQLITE_ABORT: return {Remedy::retry, "busy", "try again"};
    case SQLITE_FULL: return {Remedy::retry, "full", "free some space, then try again"};
    case SQLITE_NOMEM: return {Remedy::retry, "exhausted", "there is no memory left"};
    case SQLITE_IOERR:
      // The commit may be in the file although we were told that it failed.
      if (stage == SqliteStage::commit)
        return {Remedy::recheck, "io", "the disk may be failing; look up what is there"};
      return {Remedy::stop, "io", "the disk may be failing"};
    case SQLITE_CORRUPT:
      return {Remedy::stop, "corrupt", "restore it from a backup, then replay the source"};
    case SQLITE_NOTADB: return {Remedy::stop, "foreign", "this file is not an SQLite database"};
    case SQLITE_READONLY:
    case SQLITE_PERM: return {Remedy::stop, "denied", "check owner, rights and mount"};
    case SQLITE_CANTOPEN: return meaning_of_unopened(failure.system_error);
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG: return refused;
    case SQLITE_AUTH:
      return {Remedy::stop, "sql",
              "a handler may neither end the transaction nor change the books of Once"};
    default: return {Remedy::stop, "sql", "check the statement"};
  }
}

}  // namespace

SqliteFailure failure_of(int code, sqlite3* handle) {
  if (handle == nullptr) return {.code = SQLITE_NOMEM, .text = "out of memory"};
  return {
      .code = code, .system_error = sqlite3_system_errno(handle), .text = sqlite3_errmsg(handle)};
}

Error error_from_sqlite(const SqliteFailure& failure, SqliteStage stage, std::string_view where,
                        std::string_view what) {
  const Meaning meaning = meaning_of(failure, stage);
  const bool is_of_statement = (stage == SqliteStage::statement || stage == SqliteStage::values) &&
                               (meaning.tag == "sql" || meaning.tag == "denied");
  return {meaning.remedy,
          std::string(meaning.tag),
          fmt::format("{}: cannot {}: {} (SQLite code {}); {}", where, what, failure.text,
                      failure.code, meaning.advice),
          std::nullopt,
          std::nullopt,
          is_of_statement ? Cause::statement : Cause::other};
}

}  // namespace once
