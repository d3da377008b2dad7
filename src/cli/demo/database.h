// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;

namespace once::cli {

// A plain connection to an SQLite file, as a hand-written program would have it: for the naive
// recipe and for counting. The pipelines of Once use their store instead. Used by one thread.
class Database {
 public:
  // For reading and writing: write-ahead log, every commit synced.
  static Result<Database> open(const std::string& path);
  static Result<Database> open_to_read(const std::string& path);

  // One statement; without a transaction around it, it commits by itself.
  [[nodiscard]] Status run(std::string_view statement, std::span<const Value> values);
  [[nodiscard]] Result<Rows> query(std::string_view statement, std::span<const Value> values);
  [[nodiscard]] Status run(std::string_view statement, std::initializer_list<Value> values = {}) {
    return run(statement, std::span(values.begin(), values.size()));
  }
  [[nodiscard]] Result<Rows> query(std::string_view statement,
                                   std::initializer_list<Value> values = {}) {
    return query(statement, std::span(values.begin(), values.size()));
  }

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  explicit Database(sqlite3* connection) : connection_(connection) {}
  static Result<Database> connect(const std::string& path, int flags);

  std::unique_ptr<sqlite3, Close> connection_;
};

std::int64_t integer(const Field& field);
std::string text(const Field& field);

}  // namespace once::cli
