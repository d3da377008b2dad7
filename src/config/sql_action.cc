// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

Result<std::unique_ptr<Action>> make_action(const SqlStep& step, const Resolve& resolve,
                                            SqlDialect dialect) {
  Expect expect;
  expect.rows = step.rows;
  expect.otherwise = step.otherwise;
  return std::make_unique<SqlAction>(
      ONCE_TRY(BoundStatement::make(step.statement, resolve, dialect)), std::move(expect));
}

}  // namespace once
