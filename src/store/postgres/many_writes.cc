// SPDX-License-Identifier: Apache-2.0
// Writes in a row that only differ in their values are kept, and many of them run by one call of a
// function, which is made in the first transaction that has use for it. It must never spoil a
// transaction that would have been well without: so the first call is behind a savepoint, and if
// anything is wrong with it the writes go one by one, as few of them always do.
#include <fmt/format.h>

#include <utility>

#include "store/postgres/connection.h"

namespace once {
namespace {

constexpr std::size_t loops_max = 100;
constexpr std::size_t parameters_max = 100;  // of a function, in PostgreSQL

// A function belongs to a session, so there must be one behind this connection: a pooler that
// changes it between transactions is told by the process at the other end. A limit for the time of
// a statement is meant for one write, and texts are checked here as one of UTF-8.
constexpr std::string_view may_make_sql =
    "SELECT has_database_privilege(current_database(), 'TEMP') "
    "AND EXISTS (SELECT FROM pg_language WHERE lanname = 'plpgsql' "
    "AND has_language_privilege(oid, 'USAGE')) "
    "AND current_setting('statement_timeout') = '0' "
    "AND current_setting('server_encoding') = 'UTF8' "
    "AND current_setting('client_encoding') = 'UTF8' AND pg_backend_pid() = ?";

// Whether a text becomes a value of the type as a parameter does: not where a cast says otherwise,
// and arrays and what is no type of columns are left alone.
constexpr std::string_view types_sql =
    "SELECT format_type(t.oid, -1), t.oid = 'bytea'::regtype, t.typcategory NOT IN ('A', 'P') "
    "AND NOT EXISTS (SELECT FROM pg_cast WHERE castsource = 'text'::regtype "
    "AND casttarget = t.oid AND castmethod = 'f') "
    "FROM unnest(?::oid[]) WITH ORDINALITY AS p (type, place) JOIN pg_type AS t ON t.oid = p.type "
    "ORDER BY p.place";

Status tell(std::span<const SqlConnection::Then> rows, std::span<const std::int64_t> counts) {
  Status first;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!rows[i]) continue;
    Status done = rows[i](std::make_unique<SqlCount>(counts[i]));
    if (first) first = std::move(done);
  }
  return first;
}

}  // namespace

Status PgConnection::keep(std::span<const Value> values, Then then) {
  if (!first_) return {};  // behind one that failed: not run
  writes_.add(values, std::move(then));
  if (writes_.are_full()) flush();
  return {};
}

void PgConnection::flush() {
  if (writes_.count() == 0) return;
  EqualWrites writes = std::exchange(writes_, {});
  if (first_) remember(send_kept(writes));
}

Status PgConnection::send_kept(EqualWrites& writes) {
  auto found = loops_.find(writes.statement());
  if (!writes.are_many() || (found == loops_.end() && loops_.size() >= loops_max))
    return send_one_by_one(writes);
  if (found == loops_.end()) {
    found = loops_.emplace(writes.statement(), Loop{}).first;
    found->second.name = fmt::format("once_each_{}", loops_.size());
  }
  Loop& loop = found->second;
  const bool is_known = loop.state != Loop::State::unknown;
  if (loop.state == Loop::State::refused || (is_known && !writes.fit(loop.types)))
    return send_one_by_one(writes);
  if (!is_known || loop.state == Loop::State::unmade) return make_and_call(loop, writes);
  const Parameters arrays = writes.arrays();
  ONCE_TRY(queue({.statement = writes.numbered(),
                  .function = loop.function,
                  .rows = std::move(writes.thens())},
                 arrays));
  // The library would keep it until it has more, and the server has nothing to do.
  if (PQflush(handle_) < 0) return fail(broken(SqlStage::statement, writes.numbered()));
  return {};
}

Status PgConnection::send_one_by_one(EqualWrites& writes) {
  for (std::size_t i = 0; i < writes.count(); ++i)
    ONCE_TRY(queue({writes.numbered(), std::move(writes.thens()[i])},
                   Parameters(writes.rows()[i].values())));
  return {};
}

Status PgConnection::make_and_call(Loop& loop, EqualWrites& writes) {
  ONCE_TRY(take_answers());  // an error of what came before is not undone
  ONCE_TRY(queue({"SAVEPOINT once_each"}, {}));
  const auto counts = try_call(loop, writes);
  if (counts && *counts) {
    loop.state = Loop::State::made;
    ONCE_TRY(queue({"RELEASE SAVEPOINT once_each"}, {}));
    return tell(writes.thens(), **counts);
  }
  // A server that is away, or a rival: trying again here does not help.
  if (!counts && (broken_ || counts.error().remedy == Remedy::retry)) return fail(counts.error());
  ONCE_TRY(queue({"ROLLBACK TO SAVEPOINT once_each"}, {}));
  ONCE_TRY(queue({"RELEASE SAVEPOINT once_each"}, {}));
  return send_one_by_one(writes);
}

Result<std::optional<std::vector<std::int64_t>>> PgConnection::try_call(Loop& loop,
                                                                        const EqualWrites& writes) {
  if (loop.state == Loop::State::unknown) ONCE_TRY(learn(loop, writes));
  if (loop.state == Loop::State::refused || !writes.fit(loop.types)) return std::nullopt;
  std::vector<std::int64_t> counts;
  bool is_made = false;
  const auto made = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    is_made = true;
    return {};
  };
  const auto called = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    counts = counts_in((*answer)->bytes(0, 0));
    return {};
  };
  ONCE_TRY(queue({loop.function->create, made}, {}));
  ONCE_TRY(queue({loop.function->call, called}, writes.arrays()));
  if (Status done = take_answers(); !done) {
    // What is wrong with the values of these writes may be right with those of the next.
    if (!is_made || done.error().tag == "sql") loop.state = Loop::State::refused;
    return fail(std::move(done).error());
  }
  if (counts.size() != writes.count()) return std::nullopt;
  return counts;
}

Status PgConnection::learn(Loop& loop, const EqualWrites& writes) {
  if (ONCE_TRY(may_make_functions())) loop.types = ONCE_TRY(types_in(writes));
  loop.state = Loop::State::refused;
  if (loop.types.empty() || loop.types.size() > parameters_max) return {};
  std::vector<std::string> names;
  for (const ParameterType& type : loop.types) names.push_back(type.name);
  auto function = each_function(loop.name, writes.statement(), names);
  if (!function) return {};
  loop.function = std::make_shared<const EachFunction>(std::move(*function));
  loop.state = Loop::State::unmade;
  return {};
}

Result<bool> PgConnection::may_make_functions() {
  if (!may_make_functions_) {
    const auto answer = ONCE_TRY(ask(may_make_sql, {PQbackendPID(handle_)}));
    may_make_functions_ = answer->bytes(0, 0) == "t";
  }
  return *may_make_functions_;
}

// None if there can be no function: the write answers rows, say.
Result<std::vector<ParameterType>> PgConnection::types_in(const EqualWrites& writes) {
  std::vector<ParameterType> types;
  if (prepared_.size() >= prepared_max && !prepared_.contains(writes.numbered())) return types;
  std::string name;
  ONCE_TRY(prepare(writes.numbered(), name));
  std::string list;
  int columns = 0;
  const auto take = [&](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    const PGresult* const described = static_cast<PgAnswer&>(**answer).native();
    columns = PQnfields(described);
    for (int i = 0; i < PQnparams(described); ++i)
      list += fmt::format("{}{}", i == 0 ? "" : ",", PQparamtype(described, i));
    return {};
  };
  if (PQsendDescribePrepared(handle_, name.c_str()) != 1)
    return fail(broken(SqlStage::statement, writes.numbered()));
  pending_.push_back({writes.numbered(), take});
  ONCE_TRY(take_answers());
  if (columns > 0) return types;
  const auto answer = ONCE_TRY(ask(types_sql, {fmt::format("{{{}}}", list)}));
  for (int row = 0; row < answer->rows(); ++row) {
    if (answer->bytes(row, 2) != "t") return std::vector<ParameterType>{};
    types.push_back({answer->bytes(row, 0), answer->bytes(row, 1) == "t"});
  }
  return types;
}

// Rows before the one that failed are told what they touched, as if each had been sent alone: an
// expectation that one of them did not meet comes first. An error of the call itself is told to the
// first.
Status PgConnection::receive_rows(const Pending& pending, const PGresult* result) {
  const bool failed = PQresultStatus(result) != PGRES_TUPLES_OK;
  EachFailure failure;
  if (failed)
    failure = failure_in(result, *pending.function);
  else
    failure.counts = counts_in(PQgetvalue(result, 0, 0));
  if (failure.counts.size() + (failed ? 1 : 0) > pending.rows.size() ||
      (!failed && failure.counts.size() < pending.rows.size()))
    return fail(
        Remedy::stop, "sql",
        fmt::format("{}: \"{}\" was answered for {} messages of {}", where_,
                    shortened(pending.statement), failure.counts.size(), pending.rows.size()));
  Status first = tell(pending.rows, failure.counts);
  if (!failed || !first) return first;
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  Error error = this->error(state == nullptr ? "" : state, pending.stage, pending.statement,
                            failure.native.c_str());
  const Then& then = pending.rows[failure.counts.size()];
  return then ? then(fail(std::move(error))) : Status(fail(std::move(error)));
}

void PgConnection::end_transaction(bool is_committed) {
  in_transaction_ = false;
  for (auto& [statement, loop] : loops_)
    if (loop.state == Loop::State::made)
      loop.state = is_committed ? Loop::State::lasting : Loop::State::unmade;
}

}  // namespace once
