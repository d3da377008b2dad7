// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "load.h"

struct sqlite3;
struct sqlite3_stmt;

namespace once::bench {

// What people write by hand with the C interface of SQLite, done well: statements are prepared
// once, nothing is allocated per message. The file has the settings of our store: WAL and
// synchronous FULL. Used by one thread.
class RawSqlite {
 public:
  explicit RawSqlite(const std::string& path);
  RawSqlite(const RawSqlite&) = delete;
  RawSqlite& operator=(const RawSqlite&) = delete;
  ~RawSqlite();

  // The usual recipe: a transaction per message, in which the id is inserted if it is new, and if
  // it is, the account is changed. Durable message by message.
  double recipe_messages_per_s(IdKind kind, std::size_t count);

  // The floor: `rows` ids and changes per transaction, and nobody asks whether an id is new.
  double messages_per_s(IdKind kind, std::size_t count, std::size_t rows);

 private:
  void run(const char* statements);
  sqlite3_stmt* prepare(const char* statement);
  void step(sqlite3_stmt* statement);
  void insert_id(sqlite3_stmt* statement, const std::string& id);
  void change_account(const Message& message);
  void check(int answer);

  sqlite3* connection_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* insert_or_ignore_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* update_ = nullptr;
  std::uint64_t next_ = 0;  // the number of the next message
};

}  // namespace once::bench
