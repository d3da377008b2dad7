// SPDX-License-Identifier: Apache-2.0
#include "config/bound_statement.h"

#include <limits>

#include "config/statement.h"

namespace once {
namespace {

constexpr std::size_t extra_parameter = std::numeric_limits<std::size_t>::max();

}  // namespace

Result<BoundStatement> BoundStatement::make(const std::string& statement, const Resolve& resolve,
                                            SqlDialect dialect, std::string_view extra) {
  NamedStatement named = ONCE_TRY(name_parameters(statement, dialect));
  BoundStatement made;
  made.text_ = std::move(named.text);
  for (const std::string& name : named.names)
    made.parameters_.push_back(name == extra && !extra.empty() ? extra_parameter
                                                               : ONCE_TRY(resolve({name, {}})));
  return made;
}

Probe BoundStatement::probe() const {
  Probe probe{.statement = text_};
  for (const std::size_t parameter : parameters_)
    probe.parameters.push_back(parameter == extra_parameter ? std::nullopt
                                                            : std::optional(parameter));
  return probe;
}

Result<std::vector<Value>> BoundStatement::bind(MessageValues& values,
                                                std::string_view extra) const {
  std::vector<Value> bound;
  bound.reserve(parameters_.size());
  for (const std::size_t parameter : parameters_)
    bound.push_back(parameter == extra_parameter ? Value(extra)
                                                 : ONCE_TRY(values.value(parameter)));
  return bound;
}

namespace {

// What becomes of the message is often known only when the values have gone on to other elements.
Expect of_element(const MessageValues& values, Expect expect) {
  expect.otherwise = values.of_element(std::move(expect.otherwise));
  return expect;
}

}  // namespace

Status BoundStatement::execute(MessageValues& values, SqlTransaction& transaction,
                               const Expect& expect, std::string_view extra) const {
  return transaction.execute(text_, ONCE_TRY(bind(values, extra)), of_element(values, expect));
}

Status BoundStatement::fetch(MessageValues& values, SqlTransaction& transaction,
                             const Expect& expect, const SqlTransaction::Then& then) const {
  return transaction.fetch(text_, ONCE_TRY(bind(values, {})), of_element(values, expect), then);
}

}  // namespace once
