// SPDX-License-Identifier: Apache-2.0
#include "raw_sqlite.h"

#include <sqlite3.h>

#include "harness.h"

namespace once::bench {

RawSqlite::RawSqlite(const std::string& path) {
  check(sqlite3_open(path.c_str(), &connection_));
  run(safe_settings);
  run("CREATE TABLE processed (id TEXT PRIMARY KEY) WITHOUT ROWID");
  run(create_accounts);
  begin_ = prepare("BEGIN IMMEDIATE");
  commit_ = prepare("COMMIT");
  insert_or_ignore_ = prepare("INSERT OR IGNORE INTO processed VALUES (?)");
  insert_ = prepare("INSERT INTO processed VALUES (?)");
  update_ = prepare(std::string(update_account).c_str());
}

RawSqlite::~RawSqlite() {
  for (sqlite3_stmt* statement : {begin_, commit_, insert_or_ignore_, insert_, update_})
    sqlite3_finalize(statement);
  sqlite3_close(connection_);
}

double RawSqlite::recipe_messages_per_s(IdKind kind, std::size_t count) {
  const std::vector<Message> messages = make_messages(kind, next_, count);
  next_ += count;
  const Stopwatch watch;
  for (const Message& message : messages) {
    step(begin_);
    insert_id(insert_or_ignore_, message.id);
    if (sqlite3_changes(connection_) == 1) change_account(message);
    step(commit_);
  }
  return static_cast<double>(count) / watch.seconds();
}

double RawSqlite::messages_per_s(IdKind kind, std::size_t count, std::size_t rows) {
  const std::vector<Message> messages = make_messages(kind, next_, count);
  next_ += count;
  const Stopwatch watch;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % rows == 0) step(begin_);
    insert_id(insert_, messages[i].id);
    change_account(messages[i]);
    if (i % rows == rows - 1 || i + 1 == count) step(commit_);
  }
  return static_cast<double>(count) / watch.seconds();
}

void RawSqlite::run(const char* statements) {
  check(sqlite3_exec(connection_, statements, nullptr, nullptr, nullptr));
}

sqlite3_stmt* RawSqlite::prepare(const char* statement) {
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v3(connection_, statement, -1, SQLITE_PREPARE_PERSISTENT, &prepared,
                           nullptr));
  return prepared;
}

void RawSqlite::step(sqlite3_stmt* statement) {
  check(sqlite3_step(statement));
  check(sqlite3_reset(statement));
}

void RawSqlite::insert_id(sqlite3_stmt* statement, const std::string& id) {
  check(sqlite3_bind_text(statement, 1, id.data(), static_cast<int>(id.size()), SQLITE_STATIC));
  step(statement);
}

void RawSqlite::change_account(const Message& message) {
  check(sqlite3_bind_int64(update_, 1, 1));
  check(sqlite3_bind_int64(update_, 2, account_of(*message.key)));
  step(update_);
}

void RawSqlite::check(int answer) {
  if (answer != SQLITE_OK && answer != SQLITE_DONE && answer != SQLITE_ROW)
    give_up(std::string("raw SQLite: ") + sqlite3_errmsg(connection_));
}

}  // namespace once::bench
