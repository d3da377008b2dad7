// SPDX-License-Identifier: Apache-2.0
// Updates in a row that only differ in their values are kept, and many of them run by one statement
// over arrays. That is so only where it comes to the same as one by one: the server is asked what
// else a change of a row would do. It is behind a savepoint: if a message is to blame for anything,
// all is undone and run one by one, so that the culprit is named.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "store/postgres/connection.h"

namespace once {
namespace {

// Nothing happens beyond the change of a row by itself: no trigger, rule, policy or table below it,
// and nothing that looks at several rows at once (a unique index over what is assigned) or may call
// a function of the user.
constexpr std::string_view table_sql =
    "SELECT count(*) FROM pg_class AS c WHERE c.oid = to_regclass(?) AND c.relkind = 'r' "
    "AND NOT c.relhassubclass AND NOT c.relrowsecurity AND NOT c.relhasrules "
    "AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal) "
    "AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attgenerated <> '') "
    "AND NOT EXISTS (SELECT FROM pg_constraint AS k JOIN pg_depend AS d "
    "ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid "
    "AND d.refclassid = 'pg_proc'::regclass WHERE k.conrelid = c.oid) "
    "AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND (i.indisexclusion "
    "OR i.indisunique AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL "
    "OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid "
    "AND a.attnum = ANY (i.indkey) AND a.attname::text = ANY (?::text[])))))";

// The columns of types that have no rules of their own, and whether they can be keys: numbers, and
// texts that are equal if their bytes are.
constexpr std::string_view columns_sql =
    "SELECT a.attname, CASE WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) "
    "THEN 'number' WHEN a.atttypid IN ('text'::regtype, 'varchar'::regtype) "
    "AND l.collisdeterministic THEN 'text' ELSE '' END "
    "FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid "
    "LEFT JOIN pg_collation AS l ON l.oid = a.attcollation "
    "WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped "
    "AND t.typtype IN ('b', 'e')";

// What parameters there can be arrays of.
constexpr std::string_view types_sql =
    "SELECT format_type(t.oid, -1), t.oid = 'int8'::regtype, t.oid = 'bytea'::regtype "
    "FROM unnest(?::oid[]) WITH ORDINALITY AS p (type, place) JOIN pg_type AS t ON t.oid = p.type "
    "WHERE t.typtype IN ('b', 'e') AND t.typcategory <> 'A' AND t.typarray <> 0 "
    "AND t.typdelim = ',' ORDER BY p.place";

std::string array_of(const std::set<std::string>& names) {
  return array_literal({names.begin(), names.end()});
}

Status tell(std::span<const SqlConnection::Then> thens, std::span<const std::int64_t> counts) {
  Status first;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!thens[i]) continue;
    Status done = thens[i](std::make_unique<SqlCount>(counts[i]));
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
  if (!writes.are_many()) return send_one_by_one(writes);
  if (sets_.size() >= sets_max) sets_.clear();
  SetUpdate& set = sets_[writes.statement()];
  if (std::chrono::steady_clock::now() - set.learned_at > learned_for) ONCE_TRY(learn(set, writes));
  const auto waves = waves_of(writes.rows(), set.types, set.keys);
  return waves ? send_together(set, writes, *waves) : send_one_by_one(writes);
}

Status PgConnection::send_one_by_one(EqualWrites& writes) {
  const auto rows = writes.rows();
  for (std::size_t i = 0; i < writes.count(); ++i)
    ONCE_TRY(queue({writes.numbered(), std::move(writes.thens()[i])}, Parameters(rows[i])));
  return {};
}

Status PgConnection::send_together(SetUpdate& set, EqualWrites& writes, const Waves& waves) {
  // Whose error it is must be known, also that of a preparation.
  if (!prepared_.contains(set.text) || !prepared_.contains(writes.numbered()))
    ONCE_TRY(take_answers());
  Status done;
  std::optional<Error> refused;
  if (const auto counts = run_waves(set, writes, waves, done, refused))
    return tell(writes.thens(), *counts);
  if (!refused) return done;
  // A server that is away, or a rival: no message is to blame. What takes too long together may not
  // one by one.
  if (broken_ || (refused->remedy == Remedy::retry && refused->tag != "timeout")) {
    if (refused->cause == Cause::statement) refused->cause = Cause::joined;
    const Then& then = writes.thens().front();
    return then ? then(fail(std::move(*refused))) : Status(fail(std::move(*refused)));
  }
  if (refused->tag == "sql") set.keys.clear();
  ONCE_TRY(queue({"ROLLBACK TO SAVEPOINT once_set"}, {}));
  ONCE_TRY(queue({"RELEASE SAVEPOINT once_set"}, {}));
  return send_one_by_one(writes);
}

std::optional<std::vector<std::int64_t>> PgConnection::run_waves(const SetUpdate& set,
                                                                 const EqualWrites& writes,
                                                                 const Waves& waves, Status& done,
                                                                 std::optional<Error>& refused) {
  const bool is_alone = pending_.empty();
  const auto rows = writes.rows();
  std::vector<std::int64_t> counts(rows.size());
  // An error is kept here, not told: it may be nobody's.
  const auto taking = [&refused](auto take) {
    return [&refused, take](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
      if (answer)
        take(static_cast<const PgAnswer&>(**answer));
      else
        refused = std::move(answer).error();
      return {};
    };
  };
  done = queue({"SAVEPOINT once_set"}, {});
  for (const std::vector<std::size_t>& wave : waves.together) {
    const auto take = [&counts, &wave](const PgAnswer& answer) {
      for (int row = 0; row < answer.rows(); ++row)
        ++counts[wave[number_in<std::size_t>(answer.text(row, 0)) - 1]];
    };
    if (done) done = queue({set.text, taking(take)}, set_parameters(rows, wave, set.types));
  }
  for (const std::size_t place : waves.rest) {
    const auto take = [&counts, place](const PgAnswer& answer) {
      counts[place] = answer.touched();
    };
    if (done) done = queue({writes.numbered(), taking(take)}, Parameters(rows[place]));
  }
  if (done) done = queue({"RELEASE SAVEPOINT once_set"}, {});
  const Status answered = take_answers();
  if (done) done = answered;
  if (done) return counts;
  // What was queued before these may have failed, too, and comes first; "aborted" is one of ours.
  if (refused && done.error().tag != "aborted") refused.reset();
  if (!refused && is_alone) refused = done.error();
  return std::nullopt;
}

// Keeps what was learned, also if that is nothing.
Status PgConnection::learn(SetUpdate& set, const EqualWrites& writes) {
  ONCE_TRY(take_answers());  // an error of what came before is not undone
  set = {.learned_at = std::chrono::steady_clock::now()};
  ONCE_TRY(queue({"SAVEPOINT once_set"}, {}));
  const Status asked = ask_about(set, writes);
  if (!asked) {
    if (broken_ || asked.error().remedy == Remedy::retry) return asked;
    set.keys.clear();
    ONCE_TRY(queue({"ROLLBACK TO SAVEPOINT once_set"}, {}));
  }
  return queue({"RELEASE SAVEPOINT once_set"}, {});
}

Status PgConnection::ask_about(SetUpdate& set, const EqualWrites& writes) {
  const KeyedUpdate& update = writes.update();
  const auto table = ONCE_TRY(ask(table_sql, {update.table, array_of(update.assigned)}));
  if (table->number(0, 0) != 1) return {};
  set.types = ONCE_TRY(types_in(writes));
  if (set.types.size() != update.is_plain.size()) return {};
  set.keys = ONCE_TRY(keys_of(update));
  set.text = set_update(update, set.types);
  return {};
}

// None if one of the columns is not what we can be sure of.
Result<std::vector<SetKey>> PgConnection::keys_of(const KeyedUpdate& update) {
  const auto answer = ONCE_TRY(ask(columns_sql, {update.table}));
  std::map<std::string, std::string> columns;
  for (int row = 0; row < answer->rows(); ++row)
    columns.emplace(answer->bytes(row, 0), answer->bytes(row, 1));
  const auto is_known = [&](const std::string& name) { return columns.contains(name); };
  std::vector<SetKey> keys;
  if (!std::all_of(update.assigned.begin(), update.assigned.end(), is_known) ||
      !std::all_of(update.read.begin(), update.read.end(), is_known))
    return keys;
  for (const KeyedUpdate::Key& key : update.keys)
    if (const std::string& kind = columns[key.column]; !kind.empty())
      keys.push_back({key.parameter, kind == "text" ? KeyKind::text : KeyKind::number});
  return keys;
}

// What the server has made of each parameter; fewer if there can be no array of one.
Result<std::vector<ParameterType>> PgConnection::types_in(const EqualWrites& writes) {
  std::vector<ParameterType> types;
  if (prepared_.size() >= prepared_max && !prepared_.contains(writes.numbered())) return types;
  std::string name;
  ONCE_TRY(prepare(writes.numbered(), name));
  std::string list;
  const auto shape = ONCE_TRY(ask_shape(name, writes.numbered()));
  const PGresult* const described = static_cast<PgAnswer&>(*shape).native();
  for (int i = 0; i < PQnparams(described); ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ",", PQparamtype(described, i));
  const auto answer = ONCE_TRY(ask(types_sql, {fmt::format("{{{}}}", list)}));
  for (int row = 0; row < answer->rows(); ++row)
    types.push_back(
        {answer->bytes(row, 0), answer->bytes(row, 1) == "t", answer->bytes(row, 2) == "t"});
  return types;
}

}  // namespace once
