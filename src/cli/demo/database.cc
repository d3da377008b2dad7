// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <thread>

namespace once::cli {
namespace {

// SQLite's own way to wait for another writer sleeps longer and longer; this one stays awake, so
// that the naive recipe is not slower than it has to be.
constexpr int busy_waits_max = 50'000;
int wait_for_writer(void*, int waits) {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  return waits < busy_waits_max ? 1 : 0;
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

tl::unexpected<Error> fail_sqlite(sqlite3* connection, std::string_view what) {
  const int code = sqlite3_errcode(connection) & 0xff;
  const Remedy remedy = code == SQLITE_BUSY || code == SQLITE_FULL || code == SQLITE_LOCKED
                            ? Remedy::retry
                            : Remedy::stop;
  const char* tag = code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? "corrupt" : "sqlite";
  return fail(remedy, tag, fmt::format("{}: {}", what, sqlite3_errmsg(connection)));
}

int size_of(std::string_view text) { return static_cast<int>(text.size()); }

int bind(sqlite3_stmt* statement, int index, const Value& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int index;
    int operator()(std::nullptr_t) const { return sqlite3_bind_null(statement, index); }
    int operator()(std::int64_t n) const { return sqlite3_bind_int64(statement, index, n); }
    int operator()(double n) const { return sqlite3_bind_double(statement, index, n); }
    int operator()(std::string_view t) const {
      return sqlite3_bind_text(statement, index, t.data(), size_of(t), SQLITE_TRANSIENT);
    }
    int operator()(Blob b) const {
      return sqlite3_bind_blob(statement, index, b.bytes.data(), size_of(b.bytes),
                               SQLITE_TRANSIENT);
    }
    int operator()(Decimal d) const { return (*this)(d.digits); }
  };
  return std::visit(Binder{statement, index}, value.variant());
}

Field field_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_NULL: return nullptr;
    default: break;
  }
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const int size = sqlite3_column_bytes(statement, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

}  // namespace

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Result<Database> Database::connect(const std::string& path, int flags) {
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags, nullptr);
  Database database(connection);
  if (code != SQLITE_OK) return fail_sqlite(connection, "cannot open " + path);
  sqlite3_busy_handler(connection, wait_for_writer, nullptr);
  return database;
}

Result<Database> Database::open(const std::string& path) {
  Database database = ONCE_TRY(connect(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  ONCE_TRY(database.query("PRAGMA journal_mode=WAL"));
  ONCE_TRY(database.run("PRAGMA synchronous=FULL"));
  // SQLite before 3.51.3 can damage a file when two connections checkpoint at once; none does.
  ONCE_TRY(database.query("PRAGMA wal_autocheckpoint=0"));
  return database;
}

Result<Database> Database::open_to_read(const std::string& path) {
  return connect(path, SQLITE_OPEN_READONLY);
}

Status Database::run(std::string_view statement, std::span<const Value> values) {
  ONCE_TRY(query(statement, values));
  return {};
}

Result<Rows> Database::query(std::string_view text, std::span<const Value> values) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), text.data(), size_of(text), &raw, nullptr) != SQLITE_OK)
    return fail_sqlite(connection_.get(), text);
  const Statement statement(raw);
  int index = 0;
  for (const Value& value : values)
    if (bind(raw, ++index, value) != SQLITE_OK) return fail_sqlite(connection_.get(), text);
  Rows rows;
  int code = 0;
  while ((code = sqlite3_step(raw)) == SQLITE_ROW) {
    Row& row = rows.emplace_back();
    for (int column = 0; column < sqlite3_column_count(raw); ++column)
      row.push_back(field_of(raw, column));
  }
  if (code != SQLITE_DONE) return fail_sqlite(connection_.get(), text);
  return rows;
}

std::int64_t integer(const Field& field) {
  const auto* number = std::get_if<std::int64_t>(&field);
  return number == nullptr ? 0 : *number;
}

std::string text(const Field& field) {
  const auto* bytes = std::get_if<std::string>(&field);
  return bytes == nullptr ? std::string() : *bytes;
}

}  // namespace once::cli
