// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/strategies.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace once {

// What must hold of a row for a write to happen.
struct Condition {
  enum class Kind : std::uint8_t { equals, one_of, at_most, above };
  std::string_view column;
  Kind kind = Kind::equals;
  std::vector<Value> values = {};  // several only for one_of
};

enum class Freshness : std::uint8_t {
  snapshot,  // as the transaction sees it
  latest,    // as it is now, and locked: what a write that touched nothing has met
};

// One row of a user's table, named by its key: all that the strategies need of a store. It refers
// to its transaction and to the texts of its key, and lives no longer than the call of a strategy.
class GuardedRow {
 public:
  GuardedRow(const GuardedRow&) = delete;
  GuardedRow& operator=(const GuardedRow&) = delete;
  virtual ~GuardedRow() = default;

  // False: a row with this key is there, and is left as it is.
  [[nodiscard]] Result<bool> insert(Columns rest);

  // These columns of the row; nothing if it is not there.
  [[nodiscard]] Result<std::optional<Row>> read(std::span<const std::string_view> columns,
                                                Freshness freshness);

  // Writes if all conditions hold. False: there is no such row, or they do not hold, or the write
  // would change nothing (MySQL counts that way).
  [[nodiscard]] Result<bool> update(std::span<const Condition> conditions, Columns changes);

  // Keeps others from writing the row until the end of the transaction; never waits. `row` gets
  // these columns if it is locked.
  [[nodiscard]] Result<LockAnswer> lock(std::span<const std::string_view> columns, Row& row);

 protected:
  explicit GuardedRow(Columns key)
      : key_columns_(key.begin(), key.end()), key_(std::span<const Column>(key_columns_)) {}

  // The caller's list may be gone by now, so that it is kept here.
  const std::vector<Column> key_columns_;
  const Columns key_;

 private:
  virtual Result<bool> do_insert(Columns rest) = 0;
  virtual Result<std::optional<Row>> do_read(std::span<const std::string_view> columns,
                                             Freshness freshness) = 0;
  virtual Result<bool> do_update(std::span<const Condition> conditions, Columns changes) = 0;
  virtual Result<LockAnswer> do_lock(std::span<const std::string_view> columns, Row& row) = 0;
};

// Refuses names that are not of the form [a-z_][a-z0-9_]{0,62}: they become a part of statements.
[[nodiscard]] Status check_name(std::string_view name);

// The row with this key, over whatever the transaction offers. Bad names, an empty key and null in
// a key are errors.
[[nodiscard]] Result<std::unique_ptr<GuardedRow>> guarded_row(Transaction& transaction,
                                                              std::string_view table, Columns key);

[[nodiscard]] std::unique_ptr<GuardedRow> sql_row(SqlTransaction& transaction,
                                                  std::string_view table, Columns key);
[[nodiscard]] std::unique_ptr<GuardedRow> key_value_row(KeyValueTransaction& transaction,
                                                        std::string_view table, Columns key);

}  // namespace once
