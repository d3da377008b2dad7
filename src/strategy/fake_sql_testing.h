// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <deque>
#include <string>
#include <vector>

#include "strategy/field.h"

namespace once::testing {

// Writes down the statements it is given, with their values, and answers what a test has told it:
// so that every dialect can be read, and every answer of a database met.
class FakeSql final : public SqlTransaction {
 public:
  explicit FakeSql(SqlDialect dialect) : dialect_(dialect) {}

  std::vector<std::string> statements;
  std::vector<std::vector<Field>> values;
  std::deque<std::int64_t> touched;  // of each write; then 1
  std::deque<Rows> found;            // by each read; then nothing
  bool found_rows = false;           // MySQL with CLIENT_FOUND_ROWS: the insert found a row

  Result<std::int64_t> run(std::string_view statement, std::span<const Value> given) override {
    note(statement, given);
    if (touched.empty()) return 1;
    const std::int64_t count = touched.front();
    touched.pop_front();
    return count;
  }
  Result<Rows> query(std::string_view statement, std::span<const Value> given) override {
    if (statement == "SELECT LAST_INSERT_ID()")
      return Rows{{found_rows ? values.back().back() : Field(std::int64_t{0})}};
    note(statement, given);
    if (found.empty()) return Rows{};
    Rows rows = std::move(found.front());
    found.pop_front();
    return rows;
  }
  SqlDialect dialect() const override { return dialect_; }

  // Strategies have to know what became of a write: they queue none, and end no transaction.
  Status execute(std::string_view, std::span<const Value>, const Expect&) override { return no(); }
  Status advance(std::string_view, const Position&, std::int64_t, const Progress&) override {
    return no();
  }
  Result<std::vector<Verdict>> admit(std::span<const Entry>) override { return fail(no().error()); }
  Status settle(const Delivery&, const Outcome&) override { return no(); }
  Status enqueue(std::string_view, const Message&) override { return no(); }
  Status commit() override { return no(); }

 private:
  static Status no() { return fail(Remedy::stop, "fake", "not for strategies"); }

  void note(std::string_view statement, std::span<const Value> given) {
    statements.emplace_back(statement);
    values.emplace_back();
    for (const Value& value : given) values.back().push_back(field_of(value));
  }

  const SqlDialect dialect_;
};

}  // namespace once::testing
