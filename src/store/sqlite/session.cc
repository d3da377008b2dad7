// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/session.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"

namespace once {
namespace {

class SqliteAnswer final : public SqlAnswer {
 public:
  SqliteAnswer(Rows rows, std::int64_t changes) : rows_(std::move(rows)), changes_(changes) {}

  int rows() const override { return static_cast<int>(rows_.size()); }
  std::int64_t touched() const override { return rows_.empty() ? changes_ : rows(); }
  bool is_null(int row, int column) const override {
    return std::holds_alternative<std::nullptr_t>(field(row, column));
  }
  std::string bytes(int row, int column) const override {
    if (const auto* bytes = std::get_if<std::string>(&field(row, column))) return *bytes;
    if (const auto* number = std::get_if<std::int64_t>(&field(row, column)))
      return fmt::format("{}", *number);
    return {};
  }
  std::int64_t number(int row, int column) const override {
    const auto* number = std::get_if<std::int64_t>(&field(row, column));
    return number == nullptr ? 0 : *number;
  }
  Row row(int row) const override { return rows_[static_cast<std::size_t>(row)]; }

 private:
  const Field& field(int row, int column) const {
    return rows_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }

  const Rows rows_;
  const std::int64_t changes_;
};

}  // namespace

Status SqliteSession::send(std::string_view statement, std::span<const Value> values, Then then,
                           SqlStage) {
  auto answer = run(statement, values);
  if (then) return then(std::move(answer));
  if (!answer) return fail(std::move(answer).error());
  return {};
}

Result<std::unique_ptr<SqlAnswer>> SqliteSession::run(std::string_view statement,
                                                      std::span<const Value> values) {
  Statement prepared = ONCE_TRY(connection_.prepare(statement));
  ONCE_ASSERT(prepared.parameters() == values.size());
  prepared.bind(values);
  const std::int64_t before = connection_.total_changes();
  Rows rows;
  int code = prepared.step();
  for (; code == SQLITE_ROW; code = prepared.step()) rows.push_back(prepared.row());
  if (code != SQLITE_DONE)
    return fail(
        connection_.error_of(prepared, code, fmt::format("run \"{}\"", shortened(statement))));
  return std::make_unique<SqliteAnswer>(std::move(rows), connection_.total_changes() - before);
}

}  // namespace once
