// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/bound_statement.h"

namespace once {
namespace {

class SqlAction final : public Action {
 public:
  SqlAction(BoundStatement statement, Expect expect)
      : statement_(std::move(statement)), expect_(std::move(expect)) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    ONCE_TRY(statement_.execute(values, *transaction.sql(), expect_));
    return std::nullopt;
  }

  std::vector<Probe> probes() const override { return {statement_.probe()}; }

 private:
  const BoundStatement statement_;
  const Expect expect_;
};

// A statement whose row becomes values of the message.
class ReadingAction final : public Action {
 public:
  ReadingAction(BoundStatement statement, Expect expect, std::size_t step, std::size_t columns)
      : statement_(std::move(statement)),
        expect_(std::move(expect)),
        step_(step),
        columns_(columns) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    auto row = std::make_shared<FetchedRow>();
    const auto take = [row, columns = columns_](Rows rows) -> Status {
      if (rows.front().size() != columns)
        return fail(Remedy::stop, "sql",
                    fmt::format("a statement answers {} columns, and into names {}",
                                rows.front().size(), columns));
      row->row = std::move(rows.front());
      return {};
    };
    values.expect_row(step_, row);
    ONCE_TRY(statement_.fetch(values, *transaction.sql(), expect_, take));
    return std::nullopt;
  }

  std::vector<Probe> probes() const override {
    Probe probe = statement_.probe();
    probe.columns = columns_;
    return {probe};
  }

 private:
  const BoundStatement statement_;
  const Expect expect_;
  const std::size_t step_;
  const std::size_t columns_;
};

}  // namespace

Result<std::unique_ptr<Action>> make_action(const SqlStep& step, const Resolve& resolve,
                                            SqlDialect dialect) {
  Expect expect;
  expect.rows = step.rows;
  expect.otherwise = step.otherwise;
  auto statement = ONCE_TRY(BoundStatement::make(step.statement, resolve, dialect));
  if (step.into.empty())
    return std::make_unique<SqlAction>(std::move(statement), std::move(expect));
  return std::make_unique<ReadingAction>(std::move(statement), std::move(expect), step.number,
                                         step.into.size());
}

}  // namespace once
