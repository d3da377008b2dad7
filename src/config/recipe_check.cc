// SPDX-License-Identifier: Apache-2.0
// What of a recipe can never run, found before anything runs.
#include <fmt/format.h>

#include <algorithm>

#include "config/bindable.h"
#include "config/recipe.h"
#include "model/handler_statement.h"

namespace once {

Status Recipe::check_types(const Probe& probe, const StatementShape& shape) const {
  const auto check = [&](std::size_t value, const std::string& type) -> Status {
    const std::string reason = reason_not_bindable(plan_.values[value], type);
    if (reason.empty()) return {};
    return fail(Remedy::stop, "config", fmt::format("\"{}\": {}", probe.statement, reason));
  };
  for (std::size_t i = 0; i < probe.parameters.size(); ++i)
    if (probe.parameters[i]) ONCE_TRY(check(*probe.parameters[i], shape.parameters[i]));
  const std::size_t written = std::min(probe.written.size(), shape.columns.size());
  for (std::size_t i = 0; i < written; ++i) ONCE_TRY(check(probe.written[i], shape.columns[i]));
  return {};
}

Result<std::string> Recipe::look_at(const Probe& probe, StatementChecker& checker) const {
  const StatementShape shape = ONCE_TRY(checker.prepare(probe.statement));
  if (!shape.unchecked.empty()) return shape.unchecked;
  if (shape.parameters.size() != probe.parameters.size())
    return fail(Remedy::stop, "config",
                fmt::format("\"{}\" has {} parameters for the database, and {} values are named",
                            probe.statement, shape.parameters.size(), probe.parameters.size()));
  if (probe.columns && *probe.columns != shape.columns.size())
    return fail(Remedy::stop, "config",
                fmt::format("\"{}\" answers {} columns, and into names {}{}", probe.statement,
                            shape.columns.size(), *probe.columns,
                            shape.columns.empty() ? "; add RETURNING, or read with SELECT" : ""));
  ONCE_TRY(check_types(probe, shape));
  return std::string();
}

Result<std::vector<std::string>> Recipe::check(Store& store) const {
  std::vector<std::string> unchecked;
  StatementChecker* const checker = store.statement_checker();
  if (checker == nullptr) return unchecked;
  bool follows_create = false;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::string step = fmt::format("step {} of [[do]]", i + 1);
    const auto refuse = [&](const Error& error) -> tl::unexpected<Error> {
      const bool may_be_over = error.remedy == Remedy::retry || error.remedy == Remedy::recheck;
      if (may_be_over) return fail(error);
      return fail(plan_.error_at(part.place, error.tag, fmt::format("{}: {}", step, error.text)));
    };
    const auto skip = [&](std::string_view reason) {
      unchecked.push_back(
          fmt::format("{}: {} was not checked: {}", plan_.text_of(part.place), step, reason));
    };
    if (const auto words = part.action->command(); !words.empty())
      if (const Status taken = checker->check_command(words); !taken) return refuse(taken.error());
    if (!store.traits().sql) continue;
    for (const Probe& probe : part.action->probes()) {
      const auto looked = look_at(probe, *checker);
      // A table that an earlier step makes is not there yet: then the database refuses it ("sql").
      if (!looked && follows_create && looked.error().tag == "sql")
        skip("a step before it creates something");
      else if (!looked)
        return refuse(looked.error());
      else if (!looked->empty())
        skip(*looked);
      follows_create = follows_create || first_keyword(probe.statement, dialect_) == "create";
    }
  }
  return unchecked;
}

}  // namespace once
