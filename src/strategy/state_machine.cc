// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "strategy/guarded_row.h"

namespace once {
namespace {

constexpr std::size_t states_max = 64;

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "config", "state machine: " + std::move(text));
}

Status check_states(const std::vector<std::string>& states) {
  if (states.empty() || states.size() > states_max)
    return refuse(fmt::format("{} states, and 1 to {} are possible", states.size(), states_max));
  for (auto state = states.begin(); state != states.end(); ++state) {
    if (state->empty()) return refuse("a state without a name");
    if (std::find(states.begin(), state, *state) != state)
      return refuse(fmt::format("the state {} is declared twice", *state));
  }
  return {};
}

}  // namespace

Result<StateMachine> StateMachine::make(std::vector<std::string> states,
                                        std::vector<Transition> transitions,
                                        StateMachineOptions options) {
  ONCE_TRY(check_states(states));
  ONCE_TRY(check_name(options.column));
  if (!options.hold_table.empty()) ONCE_TRY(check_name(options.hold_table));
  StateMachine machine;
  const std::size_t count = states.size();
  machine.states_ = std::move(states);
  machine.options_ = std::move(options);
  machine.before_.resize(count);
  machine.after_.resize(count);
  machine.reach_.assign(count, std::vector<bool>(count));
  for (const Transition& way : transitions) {
    const std::size_t from = machine.index_of(way.from);
    const std::size_t to = machine.index_of(way.to);
    if (from == count || to == count)
      return refuse(fmt::format("{} -> {}: {} is not a declared state", way.from, way.to,
                                from == count ? way.from : way.to));
    if (std::find(machine.after_[from].begin(), machine.after_[from].end(), to) !=
        machine.after_[from].end())
      return refuse(fmt::format("{} -> {} is declared twice", way.from, way.to));
    machine.after_[from].push_back(to);
    machine.before_[to].push_back(from);
    machine.reach_[from][to] = true;
  }
  ONCE_TRY(machine.close());
  return machine;
}

// Finds all ways of several steps, then the two faults that a machine can have.
Status StateMachine::close() {
  const std::size_t count = states_.size();
  for (std::size_t middle = 0; middle < count; ++middle)
    for (std::size_t from = 0; from < count; ++from)
      for (std::size_t to = 0; to < count; ++to)
        if (reach_[from][middle] && reach_[middle][to]) reach_[from][to] = true;
  for (std::size_t state = 0; state < count; ++state) {
    if (reach_[state][state])
      return refuse(fmt::format(
          "a way leads from {0} back to {0}. A message that moves a row to {0} and comes again "
          "after the row has left it and could return would be applied twice: nobody can tell late "
          "from new. Leave the way back out, or use `version`",
          states_[state]));
    if (state != 0 && !reach_[0][state])
      return refuse(
          fmt::format("no way leads from the first state {} to {}", states_[0], states_[state]));
  }
  return {};
}

std::size_t StateMachine::index_of(std::string_view state) const {
  return static_cast<std::size_t>(std::find(states_.begin(), states_.end(), state) -
                                  states_.begin());
}

// One call of `move`.
//
// Who finds the row before a gap holds the message while the row is locked, and who fills the gap
// looks for held messages after having written the row: so one of the two sees the other. Where
// there is no row yet, both first insert the first state into the hold table, which does the same.
class StateMachine::Attempt {
 public:
  Attempt(const StateMachine& machine, Transaction& transaction, Columns key, GuardedRow& row,
          Columns changes)
      : machine_(machine),
        transaction_(transaction),
        key_(key),
        row_(row),
        changes_(changes.begin(), changes.end()) {}

  Result<Move> to(std::size_t target) {
    // Each time round, another has moved the row on since our write met it.
    for (std::size_t round = 0; round <= machine_.states_.size(); ++round) {
      if (ONCE_TRY(step(target))) {
        ONCE_TRY(let_through(target));
        return answer(Move::Kind::moved, target);
      }
      const auto kind = ONCE_TRY(judge(target));
      if (!kind) continue;
      if (*kind != Move::Kind::early || !can_hold()) return answer(*kind, target);
      ONCE_TRY(hold(target));
      return answer(Move::Kind::held, target);
    }
    if (target == 0)
      return fail(Remedy::park, "constraint",
                  "state machine: the row can neither be inserted nor found; a unique index other "
                  "than that of its key refuses it");
    return fail(Remedy::retry, "conflict", "state machine: the row is moved all the time");
  }

 private:
  const std::string& name(std::size_t state) const { return machine_.states_[state]; }
  bool can_hold() const { return !machine_.options_.hold_table.empty(); }

  Move answer(Move::Kind kind, std::size_t target) {
    return {kind, std::move(from_), name(target), std::move(reached_)};
  }

  // One way, if the row is where it begins.
  Result<bool> step(std::size_t target) {
    std::vector<Column> columns = changes_;
    columns.push_back({machine_.options_.column, name(target)});
    if (target == 0) {
      if (can_hold()) ONCE_TRY(hold(0));
      if (!ONCE_TRY(row_.insert(std::span<const Column>(columns)))) return false;
    } else {
      Condition before{machine_.options_.column, Condition::Kind::one_of, {}};
      for (const std::size_t state : machine_.before_[target]) before.values.push_back(name(state));
      if (!ONCE_TRY(row_.update(std::span(&before, 1), std::span<const Column>(columns))))
        return false;
    }
    reached_.push_back(name(target));
    return true;
  }

  // Why the row did not step to the target; nothing: it would now.
  Result<std::optional<Move::Kind>> judge(std::size_t target) {
    if (!ONCE_TRY(look())) {
      if (target == 0) return std::nullopt;  // removed since our insert met it
      if (!can_hold()) return Move::Kind::early;
      // Whoever makes the row has done this first, and we have waited for its end.
      ONCE_TRY(hold(0));
      if (!ONCE_TRY(look())) return Move::Kind::early;
    }
    const std::size_t here = machine_.index_of(from_);
    if (here == machine_.states_.size()) return Move::Kind::impossible;
    if (here == target || machine_.leads(target, here)) return Move::Kind::stale;
    if (!machine_.leads(here, target)) return Move::Kind::impossible;
    const auto& ways = machine_.after_[here];
    if (std::find(ways.begin(), ways.end(), target) != ways.end()) return std::nullopt;
    return Move::Kind::early;
  }

  // Finds out where the row is; false: there is none.
  Result<bool> look() {
    const std::string_view column = machine_.options_.column;
    const auto found = ONCE_TRY(row_.read(std::span(&column, 1), Freshness::latest));
    if (!found) return false;
    const auto* state = std::get_if<std::string>(&found->front());
    from_ = state == nullptr ? std::string() : *state;
    return true;
  }

  Status hold(std::size_t state) {
    const std::vector<Column> key = held_key(state);
    const auto row = ONCE_TRY(
        guarded_row(transaction_, machine_.options_.hold_table, std::span<const Column>(key)));
    ONCE_TRY(row->insert({}));
    return {};
  }

  Result<bool> is_held(std::size_t state) {
    const std::vector<Column> key = held_key(state);
    const auto row = ONCE_TRY(
        guarded_row(transaction_, machine_.options_.hold_table, std::span<const Column>(key)));
    const std::string_view column = machine_.options_.column;
    return ONCE_TRY(row->read(std::span(&column, 1), Freshness::latest)).has_value();
  }

  std::vector<Column> held_key(std::size_t state) const {
    std::vector<Column> key(key_.begin(), key_.end());
    key.push_back({machine_.options_.column, name(state)});
    return key;
  }

  // Lets through what was held, until the next gap.
  Status let_through(std::size_t here) {
    changes_.clear();  // they belong to the message that came
    while (can_hold()) {
      std::size_t next = here;
      for (const std::size_t way : machine_.after_[here])
        if (next == here && ONCE_TRY(is_held(way))) next = way;
      if (next == here || !ONCE_TRY(step(next))) return {};
      here = next;
    }
    return {};
  }

  const StateMachine& machine_;
  Transaction& transaction_;
  const Columns key_;
  GuardedRow& row_;
  std::vector<Column> changes_;
  std::string from_;
  std::vector<std::string> reached_;
};

Result<Move> StateMachine::move(Transaction& transaction, std::string_view table, Columns key,
                                std::string_view to, Columns changes) const {
  const auto row = ONCE_TRY(guarded_row(transaction, table, key));
  const std::size_t target = index_of(to);
  if (target == states_.size()) return Move{Move::Kind::impossible, {}, std::string(to), {}};
  return Attempt(*this, transaction, key, *row, changes).to(target);
}

Outcome outcome_of(const Move& move, std::uint32_t attempt, const EarlyPolicy& early) {
  const std::string from = move.from.empty() ? "not there" : move.from;
  switch (move.kind) {
    case Move::Kind::moved: return applied();
    case Move::Kind::held: return applied("held");
    case Move::Kind::stale:
      return rejected(fmt::format("stale: it is {}, {} came late", from, move.to));
    case Move::Kind::early: break;
    case Move::Kind::impossible:
      return parked(fmt::format("impossible: it is {}, no way leads to {}", from, move.to));
  }
  const std::string reason = fmt::format("early: it is {}, {} came too soon", from, move.to);
  if (attempt < early.attempts_max) return retry(reason, early.after_ms);
  return parked(fmt::format("{}; given up after {} attempts", reason, attempt));
}

}  // namespace once
