// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/sql.h>
#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/sqlite/entry_feed.h"
#include "store/sqlite/error.h"

namespace once {

// A prepared statement on loan from a connection's cache; reset when it goes. What is bound to it
// is not copied and must live until the last step.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}
  Statement(Statement&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Statement& operator=(Statement&&) = delete;
  ~Statement() {
    if (handle_ != nullptr) sqlite3_reset(handle_);
  }

  // Parameters and columns count from 1 and from 0, as SQLite does.
  void bind(int index, std::int64_t number) { sqlite3_bind_int64(handle_, index, number); }
  void bind_text(int index, std::string_view text);
  void bind_blob(int index, std::string_view bytes);
  void bind_null(int index) { sqlite3_bind_null(handle_, index); }
  void bind(std::span<const Value> values);

  // SQLite's code: SQLITE_ROW, SQLITE_DONE, or an error that `Connection::error` explains.
  int step() { return sqlite3_step(handle_); }
  void reset() { sqlite3_reset(handle_); }

  std::int64_t number(int column) const { return sqlite3_column_int64(handle_, column); }
  std::string_view bytes(int column) const;
  bool is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  Row row() const;

  bool reads_only() const { return sqlite3_stmt_readonly(handle_) != 0; }
  std::size_t parameters() const {
    return static_cast<std::size_t>(sqlite3_bind_parameter_count(handle_));
  }
  const char* text() const { return sqlite3_sql(handle_); }
  std::size_t columns() const { return static_cast<std::size_t>(sqlite3_column_count(handle_)); }

 private:
  sqlite3_stmt* handle_;
};

struct ConnectionOptions {
  bool writes = true;
  bool looks_only = false;  // no setting of the file is changed, and none is required
  std::string synchronous = "FULL";
  std::int64_t cache_bytes_max = 64 << 20;
  std::int64_t busy_ms_max = 10'000;  // for how long to wait for another process
};

// One connection to an SQLite file. Used by one thread at a time; the owner sees to that.
class Connection {
 public:
  // Sets what makes a commit survive a power cut, reads it back, and refuses anything else.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::string& path,
                                                                const ConnectionOptions& options);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Whose statements are prepared: ours, or those of a handler, which may neither end the
  // transaction nor write our tables. Each side has a cache of its own.
  enum class Side : std::uint8_t { ours, handler };
  [[nodiscard]] Result<Statement> prepare(std::string_view sql, Side side = Side::ours);

  // Runs a statement to its end, or collects its rows.
  [[nodiscard]] Status run(std::string_view sql, std::initializer_list<Value> values = {});
  [[nodiscard]] Result<Rows> query(std::string_view sql, std::initializer_list<Value> values = {});
  [[nodiscard]] Result<Rows> rows(Statement& statement);
  // Several statements without parameters, for schemas.
  [[nodiscard]] Status script(const std::string& sql);

  // Runs `change` in a mode in which a view of the user that does not compile any more is no reason
  // to refuse the change of a table.
  [[nodiscard]] Status change_schema(const std::function<Status()>& change);
  // Lets statements call once_now_ms(), which is the time of this clock in milliseconds.
  [[nodiscard]] Status add_clock(Clock& clock);

  // An error with the tag "gone" if the file is no longer at its place.
  [[nodiscard]] Status begin();
  [[nodiscard]] Status commit();
  void rollback();

  Error error(int code, std::string_view what, SqliteStage stage = SqliteStage::statement) const;
  // The error of a statement that failed while it ran.
  Error error_of(const Statement& statement, int code, std::string_view what);
  // Rows that the last INSERT, UPDATE or DELETE changed, and all since the connection was opened.
  std::int64_t changes() const { return sqlite3_changes64(handle_); }
  std::int64_t total_changes() const { return sqlite3_total_changes64(handle_); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }
  // Frames in the write-ahead log after the last commit.
  int wal_pages() const { return wal_pages_; }
  // What an admit records with one statement; only of a connection that writes.
  EntryFeed& feed() { return feed_; }
  // Moves the write-ahead log into the database; answers how many of its frames are left.
  [[nodiscard]] Result<int> checkpoint(int mode);

 private:
  // Most texts come from the same place each time, so that the address finds them; the text is
  // compared all the same, for an address can be used again.
  struct Slot {
    const char* address = nullptr;
    std::string_view text;
    sqlite3_stmt* handle = nullptr;
  };
  struct Cache {
    std::array<Slot, 64> slots;
    std::unordered_map<std::string, sqlite3_stmt*> by_text;
  };

  Connection(std::string where, sqlite3* handle) : where_(std::move(where)), handle_(handle) {}
  Status configure(const ConnectionOptions& options);
  Status check_in_place();
  Status configure_file(const ConnectionOptions& options);
  Result<sqlite3_stmt*> compile(std::string_view sql, Cache& cache);
  static void clear(Cache& cache);
  static int authorize(void* self, int action, const char* first, const char* second,
                       const char* database, const char* trigger);
  static int remember_wal_pages(void* self, sqlite3* handle, const char* database, int pages);

  const std::string where_;
  sqlite3* handle_;
  Side side_ = Side::ours;
  int wal_pages_ = 0;
  EntryFeed feed_;
  std::array<Cache, 2> caches_;
};

}  // namespace once
