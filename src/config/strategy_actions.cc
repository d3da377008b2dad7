// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <once/strategies.h>

#include <algorithm>

#include "config/bound_statement.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "config", std::move(text));
}

// Columns with the values of a message.
class ColumnValues {
 public:
  static Result<ColumnValues> make(const std::vector<ColumnRef>& columns, const Resolve& resolve) {
    ColumnValues made;
    for (const ColumnRef& column : columns) {
      ONCE_TRY(check_name(column.column));
      made.names_.push_back(column.column);
      made.values_.push_back(ONCE_TRY(resolve(column.use)));
    }
    return made;
  }

  // Refers to the names and to the values.
  Result<std::vector<Column>> of(MessageValues& values) const {
    std::vector<Column> columns;
    columns.reserve(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Value value = ONCE_TRY(values.value(values_[i]));
      columns.push_back({names_[i], value});
    }
    return columns;
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::size_t>& values() const { return values_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::size_t> values_;
};

// A row of the user's: its table, its key, and what is written.
struct RowColumns {
  std::string table;
  ColumnValues key;
  ColumnValues set;

  static Result<RowColumns> make(const std::string& table, const std::vector<ColumnRef>& key,
                                 const std::vector<ColumnRef>& set, const Resolve& resolve) {
    ONCE_TRY(check_name(table));
    if (table.starts_with("once_"))
      return refuse(fmt::format("the table {} belongs to Once; use one of your own", table));
    for (const ColumnRef& column : set)
      if (std::any_of(key.begin(), key.end(),
                      [&](const ColumnRef& other) { return other.column == column.column; }))
        return refuse(fmt::format("the column {} is in key and in set", column.column));
    auto keys = ONCE_TRY(ColumnValues::make(key, resolve));
    auto sets = ONCE_TRY(ColumnValues::make(set, resolve));
    return RowColumns{table, std::move(keys), std::move(sets)};
  }

  // All columns, those of the strategy itself included.
  Probe probe(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> names = key.names();
    names.insert(names.end(), set.names().begin(), set.names().end());
    names.insert(names.end(), more.begin(), more.end());
    Probe probe{.statement = fmt::format("SELECT {} FROM {}", fmt::join(names, ", "), table)};
    probe.written = key.values();
    probe.written.insert(probe.written.end(), set.values().begin(), set.values().end());
    return probe;
  }
};

class UniqueAction final : public Action {
 public:
  UniqueAction(RowColumns row, Outcome present)
      : row_(std::move(row)), present_(std::move(present)) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    const auto key = ONCE_TRY(row_.key.of(values));
    const auto set = ONCE_TRY(row_.set.of(values));
    switch (ONCE_TRY(unique(transaction, row_.table, std::span(key), std::span(set)))) {
      case UniqueAnswer::inserted: return std::nullopt;
      case UniqueAnswer::present: break;
    }
    return present_;
  }

  std::vector<Probe> probes() const override { return {row_.probe()}; }

 private:
  const RowColumns row_;
  const Outcome present_;
};

class VersionAction final : public Action {
 public:
  VersionAction(RowColumns row, std::size_t expected, const VersionStep& step)
      : row_(std::move(row)),
        expected_(expected),
        contended_(step.contended),
        missing_(step.missing) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    const auto key = ONCE_TRY(row_.key.of(values));
    const auto set = ONCE_TRY(row_.set.of(values));
    const auto* number = std::get_if<std::int64_t>(ONCE_TRY(values.cell(expected_)));
    if (number == nullptr) return parked("the version that is expected is null or no integer");
    switch (ONCE_TRY(version(transaction, row_.table, std::span(key), *number, std::span(set)))) {
      case VersionAnswer::changed:
      case VersionAnswer::kept: return std::nullopt;
      case VersionAnswer::missing: return missing_;
      case VersionAnswer::contended: break;
    }
    return contended_;
  }

  std::vector<Probe> probes() const override { return {row_.probe({"version"})}; }

 private:
  const RowColumns row_;
  const std::size_t expected_;
  const Outcome contended_;
  const Outcome missing_;
};

class StateAction final : public Action {
 public:
  StateAction(RowColumns row, std::size_t to, StateMachine machine, const StateStep& step,
              std::optional<BoundStatement> on_reached)
      : row_(std::move(row)),
        to_(to),
        machine_(std::move(machine)),
        options_(step.options),
        early_(step.early),
        on_reached_(std::move(on_reached)) {}

  Result<std::optional<Outcome>> run(MessageValues& values,
                                     Transaction& transaction) const override {
    const auto key = ONCE_TRY(row_.key.of(values));
    const auto set = ONCE_TRY(row_.set.of(values));
    const std::string to = ONCE_TRY(values.text(to_));
    const Move move =
        ONCE_TRY(machine_.move(transaction, row_.table, std::span(key), to, std::span(set)));
    if (move.kind != Move::Kind::moved) return outcome_of(move, values.delivery().attempt, early_);
    // One message may release others that were held: the row went through all of these.
    if (on_reached_)
      for (const std::string& state : move.reached)
        ONCE_TRY(on_reached_->execute(values, *transaction.sql(), {}, state));
    return std::nullopt;
  }

  std::vector<Probe> probes() const override {
    std::vector<Probe> found{row_.probe({options_.column})};
    if (!options_.hold_table.empty())
      found.push_back(
          {.statement = fmt::format("SELECT {}, {} FROM {}", fmt::join(row_.key.names(), ", "),
                                    options_.column, options_.hold_table),
           .written = row_.key.values()});
    if (on_reached_) found.push_back(on_reached_->probe());
    return found;
  }

 private:
  const RowColumns row_;
  const std::size_t to_;
  const StateMachine machine_;
  const StateMachineOptions options_;
  const EarlyPolicy early_;
  const std::optional<BoundStatement> on_reached_;
};

}  // namespace

Result<std::unique_ptr<Action>> make_action(const UniqueStep& step, const Resolve& resolve,
                                            SqlDialect) {
  auto row = ONCE_TRY(RowColumns::make(step.table, step.key, step.set, resolve));
  return std::make_unique<UniqueAction>(std::move(row), step.present);
}

Result<std::unique_ptr<Action>> make_action(const VersionStep& step, const Resolve& resolve,
                                            SqlDialect) {
  auto row = ONCE_TRY(RowColumns::make(step.table, step.key, step.set, resolve));
  const std::size_t expected = ONCE_TRY(resolve(step.expected));
  return std::make_unique<VersionAction>(std::move(row), expected, step);
}

Result<std::unique_ptr<Action>> make_action(const StateStep& step, const Resolve& resolve,
                                            SqlDialect dialect) {
  auto row = ONCE_TRY(RowColumns::make(step.table, step.key, step.set, resolve));
  const std::size_t to = ONCE_TRY(resolve(step.to));
  if (!step.options.hold_table.empty()) ONCE_TRY(check_name(step.options.hold_table));
  ONCE_TRY(check_name(step.options.column));
  auto machine = ONCE_TRY(StateMachine::make(step.states, step.transitions, step.options));
  std::optional<BoundStatement> on_reached;
  if (!step.on_reached.empty())
    on_reached = ONCE_TRY(BoundStatement::make(step.on_reached, resolve, dialect, "reached"));
  return std::make_unique<StateAction>(std::move(row), to, std::move(machine), step,
                                       std::move(on_reached));
}

}  // namespace once
