// SPDX-License-Identifier: Apache-2.0
#include "store/sql/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/failpoint.h"
#include "model/compact_id.h"
#include "model/expectation.h"
#include "model/fingerprint.h"
#include "model/handler_statement.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "model/message_view.h"

namespace once {

Status ServerTransaction::check_open() const {
  if (doom_) return fail(*doom_);
  if (committed_)
    return fail(Remedy::stop, "config", "the transaction was committed; begin another");
  return {};
}

// --- positions

Status ServerTransaction::advance(std::string_view partition, const Position& from, std::int64_t to,
                                  const Progress& progress) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_advance(partition, from, to));
  return keep(advance_now(partition, from, to, progress));
}

Status ServerTransaction::advance_now(std::string_view partition, const Position& from,
                                      std::int64_t to, const Progress& progress) {
  const std::int64_t number = ONCE_TRY(store_.number_of(partition));
  if (from == Position{})  // nobody may have taken it: then it has no row yet
    ONCE_TRY(connection().send(
        fmt::format("{} once_position (scope, source_partition, at_offset, fence) "
                    "VALUES (?, ?, -1, 0) {}",
                    store_.words().insert, store_.words().skip_present),
        {scope_number_, number}));
  unchecked_ = true;
  const auto check = [this, name = std::string(partition),
                      from](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if ((*answer)->touched() == 1) return {};
    // Only to tell people, so without a lock: we hold some ourselves.
    const Position actual = ONCE_TRY(store_.aside([&](SqlConnection& other) {
      return store_.parts_.positions.read(other, scope_, name, "");
    }));
    return fail(store_.fenced(scope_, name, from, actual));
  };
  return send_advance(number, from, to, progress, check);
}

// One statement for all of it. No index has these columns, so that PostgreSQL writes only the row.
Status ServerTransaction::send_advance(std::int64_t partition, const Position& from,
                                       std::int64_t to, const Progress& progress,
                                       SqlConnection::Then then) {
  std::string statement =
      "UPDATE once_position SET at_offset = ?, settled_ms = greatest(settled_ms, ?), "
      "waiting_ms = ?";
  std::vector<Value> values{to, progress.settled_ms, progress.waiting_ms};
  if (progress.drained) {
    statement += fmt::format(", drained_ms = {} + ?", store_.words().now_ms);
    values.emplace_back(store_.skew_ms());
  }
  if (progress.witness.offset >= 0) {
    statement += ", witness_offset = ?, witness_digest = ?";
    values.insert(values.end(), {progress.witness.offset, progress.witness.digest});
  }
  statement += " WHERE scope = ? AND source_partition = ? AND at_offset = ? AND fence = ?";
  values.insert(values.end(), {scope_number_, partition, from.offset, from.fence});
  return connection().send(statement, values, std::move(then), SqlStage::statement);
}

// --- ids

Admission::Admission(std::span<const Entry> entries) : entries_(entries), index_(entries.size()) {
  std::unordered_map<std::string_view, std::size_t> seen;
  std::vector<std::size_t> owner(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto [at, is_new] = seen.emplace(entries[i].id, known_.size());
    if (is_new) known_.push_back({std::string(CompactId(entries[i].id).bytes()), i});
    owner[i] = known_[at->second].first;
  }
  std::sort(known_.begin(), known_.end(),
            [](const Known& a, const Known& b) { return a.compact < b.compact; });
  std::vector<std::size_t> place(entries.size());
  for (std::size_t k = 0; k < known_.size(); ++k) place[known_[k].first] = k;
  for (std::size_t i = 0; i < entries.size(); ++i) index_[i] = place[owner[i]];
}

void Admission::take(Known& known, const SqlAnswer& answer, int row, int column) {
  known.found = true;
  known.kind = Verdict::Kind::duplicate;
  known.stored = {static_cast<Outcome::Kind>(answer.number(row, column)),
                  answer.bytes(row, column + 2), 0};
  known.fingerprint = fingerprint_from(answer.bytes(row, column + 1));
  known.stored_partition = answer.number(row, column + 3);
  known.stored_offset = answer.number(row, column + 4);
}

std::vector<Verdict> Admission::verdicts() const {
  std::vector<Verdict> made(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Known& one = known_[index_[i]];
    if (one.kind == Verdict::Kind::too_old ||
        (one.kind == Verdict::Kind::fresh && i == one.first)) {
      made[i].kind = one.kind;
      continue;
    }
    const Entry& first = entry(one);
    made[i] = {Verdict::Kind::duplicate, one.stored};
    if (!contradicts(one.found ? one.fingerprint : first.fingerprint, entries_[i].fingerprint))
      continue;
    made[i].kind = Verdict::Kind::mismatch;
    made[i].first_offset = one.found ? one.stored_offset : first.offset;
    if (!one.found) made[i].first_partition = first.partition;
  }
  return made;
}

Result<std::vector<Verdict>> ServerTransaction::admit(std::span<const Entry> entries) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_entries(entries));
  if (entries.empty()) return std::vector<Verdict>{};
  return keep(admit_resuming(entries));
}

Result<std::vector<Verdict>> ServerTransaction::admit_plain(std::span<const Entry> entries) {
  Admission admission(entries);
  for (Admission::Known& known : admission.known())
    known.partition = ONCE_TRY(store_.number_of(admission.entry(known).partition));
  ONCE_TRY(record_ids(admission));
  unchecked_ = false;  // it waited for all that was queued
  for (const Admission::Known& known : admission.known())
    if (known.kind == Verdict::Kind::fresh)
      fresh_[std::string(admission.entry(known).id)] = {known.partition,
                                                        admission.entry(known).offset};
  std::vector<Verdict> verdicts = admission.verdicts();
  ONCE_TRY(name_partitions(admission, verdicts));
  return verdicts;
}

Status ServerTransaction::name_partitions(const Admission& admission,
                                          std::vector<Verdict>& verdicts) {
  std::map<std::int64_t, std::string> names;
  const auto is_open = [&](std::size_t i) {
    return verdicts[i].kind == Verdict::Kind::mismatch && admission.known_of(i).found;
  };
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    if (is_open(i)) names.try_emplace(admission.known_of(i).stored_partition);
  if (names.empty()) return {};
  for (auto& [number, name] : names) {
    const auto take = [&name = name](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
      if (!answer) return fail(std::move(answer).error());
      if ((*answer)->rows() == 1) name = (*answer)->bytes(0, 0);
      return {};
    };
    ONCE_TRY(connection().send("SELECT name FROM once_name WHERE number = ?", {number}, take));
  }
  ONCE_TRY(connection().sync());
  for (std::size_t i = 0; i < verdicts.size(); ++i)
    if (is_open(i)) verdicts[i].first_partition = names[admission.known_of(i).stored_partition];
  return {};
}

// --- outcomes

Status ServerTransaction::settle(const Delivery& delivery, const Outcome& outcome) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_settle(outcome));
  return keep(settle_now(delivery, outcome));
}

Status ServerTransaction::settle_now(const Delivery& delivery, const Outcome& outcome) {
  const auto fresh = fresh_.find(std::string(delivery.id));
  if (fresh != fresh_.end() && fresh->second.offset == delivery.offset &&
      fresh->second.partition == ONCE_TRY(store_.number_of(delivery.partition))) {
    const CompactId id(delivery.id);
    if (outcome.kind == Outcome::Kind::no_effect) {
      ONCE_TRY(connection().send("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                                 {scope_number_, Blob{id.bytes()}}));
      fresh_.erase(fresh);
    } else if (outcome.kind != Outcome::Kind::applied || !outcome.detail.empty()) {
      ONCE_TRY(connection().send(
          "UPDATE once_ledger SET outcome = ?, result = ? WHERE scope = ? AND id = ?",
          {static_cast<int>(outcome.kind), Blob{outcome.detail}, scope_number_, Blob{id.bytes()}}));
    }
  }
  if (outcome.kind == Outcome::Kind::parked) ONCE_TRY(park(delivery, outcome.detail));
  if (outcome.kind == Outcome::Kind::later) return put_off(delivery, outcome);
  if (delivery.deferral.number == 0) return {};
  return connection().send("DELETE FROM once_deferred WHERE number = ?",
                           {delivery.deferral.number});
}

Status ServerTransaction::park(const Delivery& delivery, const std::string& reason) {
  const std::string headers = encode_headers(delivery);
  ONCE_TRY(connection().send(
      fmt::format("INSERT INTO once_parked (scope, source_partition, at_offset, attempts, "
                  "parked_ms, reason, id, message_key, body, headers, timestamp_ms) "
                  "VALUES (?, ?, ?, ?, {}, ?, ?, ?, ?, ?, ?)",
                  store_.words().now_ms),
      {scope_number_, Blob{delivery.partition}, delivery.offset, delivery.attempt, Blob{reason},
       Blob{delivery.id}, Blob{delivery.key}, Blob{delivery.body}, Blob{headers},
       delivery.timestamp_ms}));
  return store_.log_operation(connection(), scope_number_, "park", delivery.id, reason);
}

// --- outbox

Status ServerTransaction::enqueue(std::string_view destination, const Message& message) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_destination(destination));
  return keep(enqueue_now(destination, message));
}

Status ServerTransaction::enqueue_now(std::string_view destination, const Message& message) {
  const std::int64_t number = ONCE_TRY(store_.number_of(destination));
  const std::string headers = encode_headers(message);
  return connection().send(
      "INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      {number, Blob{message.id}, Blob{view_of(message.key)}, Blob{view_of(message.body)},
       Blob{headers}, message.timestamp_ms});
}

// --- commit

Status ServerTransaction::commit() {
  ONCE_TRY(check_open());
  return keep(commit_now());
}

Status ServerTransaction::commit_now() {
  // The server would commit before we could look: what has an expectation is looked at first. A
  // statement that fails needs no look: the server then runs nothing behind it.
  if (unchecked_) ONCE_TRY(connection().sync());
  ONCE_POINT(store_before_commit);
  ONCE_TRY(connection().commit());
  ONCE_TRY(connection().sync());
  committed_ = true;
  return {};
}

// --- SQL

Status ServerTransaction::execute(std::string_view statement, std::span<const Value> values,
                                  const Expect& expect) {
  ONCE_TRY(check_open());
  return keep(execute_now(statement, values, expect));
}

Status ServerTransaction::check_statement(std::string_view statement) {
  if (checked_.contains(statement)) return {};
  ONCE_TRY(check_handler_statement(statement, dialect()));
  ONCE_TRY(allow(statement));
  ONCE_TRY(store_.check_tables(statement));
  if (may_change_session(statement, dialect())) connection().expect_session_change();
  if (checked_.size() < checked_max) checked_.emplace(statement);
  return {};
}

Status ServerTransaction::execute_now(std::string_view statement, std::span<const Value> values,
                                      const Expect& expect) {
  ONCE_TRY(check_statement(statement));
  const auto message = expect.message ? expect.message : message_;
  const auto blame = [message](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(blamed_on(message, std::move(answer).error()));
    return {};
  };
  const auto check =
      [this, message, expect = std::make_shared<Expect>(expect),
       original = std::string(statement)](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(blamed_on(message, std::move(answer).error()));
    const std::int64_t rows = (*answer)->touched();
    if (rows == expect->rows) return {};
    return fail(unmet_expectation(where(), original, rows, *expect, message));
  };
  if (expect.rows >= 0) unchecked_ = true;
  auto sent = expect.rows < 0 ? connection().send_uncounted(statement, values, blame)
                              : connection().send(statement, values, check, SqlStage::statement);
  if (!sent) return fail(blamed_on(message, std::move(sent).error()));
  return {};
}

Result<std::unique_ptr<SqlAnswer>> ServerTransaction::ask(std::string_view statement,
                                                          std::span<const Value> values) {
  ONCE_TRY(check_statement(statement));
  auto answer = connection().ask(statement, values);
  if (!answer) return fail(blamed_on(message_, std::move(answer).error()));
  unchecked_ = false;  // it waited for all that was queued
  return answer;
}

Result<std::int64_t> ServerTransaction::run(std::string_view statement,
                                            std::span<const Value> values) {
  ONCE_TRY(check_open());
  const auto answer = keep(ask(statement, values));
  if (!answer) return fail(answer.error());
  return (*answer)->touched();
}

Rows ServerTransaction::rows_of(const SqlAnswer& answer) {
  Rows found;
  found.reserve(static_cast<std::size_t>(answer.rows()));
  for (int i = 0; i < answer.rows(); ++i) found.push_back(answer.row(i));
  return found;
}

Result<Rows> ServerTransaction::query(std::string_view statement, std::span<const Value> values) {
  ONCE_TRY(check_open());
  const auto answer = keep(ask(statement, values));
  if (!answer) return fail(answer.error());
  return rows_of(**answer);
}

Status ServerTransaction::fetch(std::string_view statement, std::span<const Value> values,
                                const Expect& expect, const Then& then) {
  ONCE_TRY(check_open());
  return keep(fetch_now(statement, values, expect, then));
}

Status ServerTransaction::fetch_now(std::string_view statement, std::span<const Value> values,
                                    const Expect& expect, const Then& then) {
  ONCE_TRY(check_statement(statement));
  const auto message = expect.message ? expect.message : message_;
  const auto take = [message, then, expect, where = where(), original = std::string(statement)](
                        Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(blamed_on(message, std::move(answer).error()));
    const std::int64_t count = (*answer)->rows();
    if (expect.rows >= 0 && count != expect.rows)
      return fail(unmet_expectation(where, original, count, expect, message));
    return then(rows_of(**answer));
  };
  unchecked_ = true;
  auto sent = connection().send(statement, values, take, SqlStage::statement);
  if (!sent) return fail(blamed_on(message, std::move(sent).error()));
  return {};
}

Status ServerTransaction::flush() {
  ONCE_TRY(check_open());
  ONCE_TRY(keep(connection().sync()));
  unchecked_ = false;
  return {};
}

}  // namespace once
