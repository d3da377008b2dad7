// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "model/random.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

// Puts `separator` between the texts of a statement, and not before the first.
class Joined {
 public:
  Joined(std::string& text, std::string_view separator) : text_(text), separator_(separator) {}
  template <class... Parts>
  void add(const Parts&... parts) {
    if (!first_) text_ += separator_;
    first_ = false;
    (text_.append(parts), ...);
  }

 private:
  std::string& text_;
  const std::string_view separator_;
  bool first_ = true;
};

// A row of a table of an SQL store. Makes the same text for the same columns, so that the store
// can keep its prepared statements.
class SqlRow final : public GuardedRow {
 public:
  SqlRow(SqlTransaction& transaction, std::string_view table, Columns key)
      : GuardedRow(key), transaction_(transaction), table_(table) {}

 private:
  Result<bool> do_insert(Columns rest) override {
    std::string names;
    std::string marks;
    std::vector<Value> values;
    Joined name(names, ", ");
    Joined mark(marks, ", ");
    for (const Columns& columns : {key_, rest})
      for (const Column& column : columns) {
        name.add(column.name);
        mark.add("?");
        values.push_back(column.value);
      }
    const std::string insert =
        fmt::format("INSERT INTO {} ({}) VALUES ({}) ", table_, names, marks);
    if (transaction_.dialect() == SqlDialect::mysql) return insert_mysql(insert, values);
    return ONCE_TRY(transaction_.run(insert + on_conflict(), values)) != 0;
  }

  // A conflict in the key, and in nothing else, is an answer.
  std::string on_conflict() const {
    std::string names;
    Joined name(names, ", ");
    for (const Column& column : key_) name.add(column.name);
    return fmt::format("ON CONFLICT ({}) DO NOTHING", names);
  }

  // MySQL counts 0 for a row that was there and stays as it is, but 1, as if it had been inserted,
  // on a connection that counts the rows it finds. So whoever finds a row leaves a number behind.
  Result<bool> insert_mysql(const std::string& insert, std::vector<Value> values) {
    const std::int64_t number = random_large_number();
    values.emplace_back(number);
    const std::string statement =
        fmt::format("{0}ON DUPLICATE KEY UPDATE {1} = IF(LAST_INSERT_ID(?) = 0, {1}, {1})", insert,
                    key_.begin()->name);
    if (ONCE_TRY(transaction_.run(statement, values)) == 0) return false;
    const Rows left = ONCE_TRY(transaction_.query("SELECT LAST_INSERT_ID()"));
    return left.empty() || left[0].empty() || left[0][0] != Field(number);
  }

  // Positive, and far above what a table counts.
  static std::int64_t random_large_number() {
    return static_cast<std::int64_t>(random_number() >> 2 | std::uint64_t{1} << 61);
  }

  Result<std::optional<Row>> do_read(std::span<const std::string_view> columns,
                                     Freshness freshness) override {
    std::string statement = select(columns);
    if (freshness == Freshness::latest && can_lock_rows()) statement += " FOR UPDATE";
    Rows rows = ONCE_TRY(transaction_.query(statement, key_values()));
    if (rows.empty()) return std::nullopt;
    return std::move(rows[0]);
  }

  Result<bool> do_update(std::span<const Condition> conditions, Columns changes) override {
    std::string statement = fmt::format("UPDATE {} SET ", table_);
    std::vector<Value> values;
    Joined change(statement, ", ");
    for (const Column& column : changes) {
      change.add(column.name, " = ?");
      values.push_back(column.value);
    }
    statement += where_key();
    for (const Column& column : key_) values.push_back(column.value);
    for (const Condition& condition : conditions) {
      statement += fmt::format(" AND {} {}", condition.column, comparison(condition));
      values.insert(values.end(), condition.values.begin(), condition.values.end());
    }
    return ONCE_TRY(transaction_.run(statement, values)) != 0;
  }

  Result<LockAnswer> do_lock(std::span<const std::string_view> columns, Row& row) override {
    const std::string statement = select(columns);
    if (!can_lock_rows()) return try_lock(statement, row);
    if (ONCE_TRY(try_lock(statement + " FOR UPDATE SKIP LOCKED", row)) == LockAnswer::locked)
      return LockAnswer::locked;
    const Rows found = ONCE_TRY(transaction_.query(statement, key_values()));
    if (!found.empty()) return LockAnswer::busy;
    if (transaction_.dialect() != SqlDialect::mysql) return LockAnswer::missing;
    // What a snapshot of MySQL does not show may have been made since. If another has locked it,
    // this fails, and with it the transaction: rare, and better than to say that it is missing.
    return try_lock(statement + " FOR UPDATE NOWAIT", row);
  }

  Result<LockAnswer> try_lock(const std::string& statement, Row& row) {
    Rows found = ONCE_TRY(transaction_.query(statement, key_values()));
    if (found.empty()) return LockAnswer::missing;
    row = std::move(found[0]);
    return LockAnswer::locked;
  }

  static std::string comparison(const Condition& condition) {
    switch (condition.kind) {
      case Condition::Kind::equals: return "= ?";
      case Condition::Kind::at_most: return "<= ?";
      case Condition::Kind::above: return "> ?";
      case Condition::Kind::one_of: break;
    }
    std::string marks;
    Joined mark(marks, ", ");
    for (std::size_t i = 0; i < condition.values.size(); ++i) mark.add("?");
    return fmt::format("IN ({})", marks);
  }

  std::string select(std::span<const std::string_view> columns) const {
    std::string names;
    Joined name(names, ", ");
    for (const std::string_view column : columns) name.add(column);
    return fmt::format("SELECT {} FROM {}{}", names, table_, where_key());
  }

  std::string where_key() const {
    std::string text = " WHERE ";
    Joined column_is(text, " AND ");
    for (const Column& column : key_) column_is.add(column.name, " = ?");
    return text;
  }

  std::vector<Value> key_values() const {
    std::vector<Value> values;
    for (const Column& column : key_) values.push_back(column.value);
    return values;
  }

  // A transaction of SQLite is the only writer of the file, so that a row needs no lock.
  bool can_lock_rows() const { return transaction_.dialect() != SqlDialect::sqlite; }

  SqlTransaction& transaction_;
  const std::string_view table_;
};

}  // namespace

std::unique_ptr<GuardedRow> sql_row(SqlTransaction& transaction, std::string_view table,
                                    Columns key) {
  return std::make_unique<SqlRow>(transaction, table, key);
}

}  // namespace once
