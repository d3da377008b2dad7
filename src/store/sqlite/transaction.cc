// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/transaction.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/compact_id.h"
#include "model/expectation.h"
#include "model/fingerprint.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "model/message_view.h"
#include "store/sqlite/session.h"

namespace once {
namespace {

// Ids in order fall on the same pages of the ledger one after another. The sort is stable: of two
// equal ids the first is the fresh one.
void sort_by_id(std::span<const Entry> entries, std::vector<EntryFeed::Row>& rows) {
  const auto before = [&](const EntryFeed::Row& a, const EntryFeed::Row& b) {
    return entries[a.index].id < entries[b.index].id;
  };
  if (!std::is_sorted(rows.begin(), rows.end(), before))
    std::stable_sort(rows.begin(), rows.end(), before);
}

}  // namespace

SqliteTransaction::~SqliteTransaction() {
  if (turn_ != nullptr) store_.roll_back_writing();
}

Status SqliteTransaction::check_open() const {
  if (doom_) return fail(*doom_);
  if (turn_ == nullptr)
    return fail(Remedy::stop, "config", "the transaction was committed; begin another");
  return {};
}

template <class T>
Result<T> SqliteTransaction::keep(Result<T> result) {
  if (!result) doom_ = result.error();
  return result;
}

Result<std::int64_t> SqliteTransaction::scope_number() {
  if (!scope_number_) scope_number_ = ONCE_TRY(store_.names_.number_of(writer(), scope_));
  return *scope_number_;
}

Result<std::int64_t> SqliteTransaction::partition_number(std::string_view partition) {
  if (partition_number_ == 0 || partition_ != partition) {
    partition_number_ = ONCE_TRY(store_.names_.number_of(writer(), partition));
    partition_ = partition;
  }
  return partition_number_;
}

Result<std::int64_t> SqliteTransaction::horizon_ms() {
  if (!horizon_ms_) {
    const std::int64_t scope = ONCE_TRY(scope_number());
    horizon_ms_ = ONCE_TRY(stored_horizon_ms(writer(), scope));
  }
  return *horizon_ms_;
}

Status SqliteTransaction::advance(std::string_view partition, const Position& from, std::int64_t to,
                                  const Progress& progress) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_advance(partition, from, to));
  return keep(advance_now(partition, from, to, progress));
}

Status SqliteTransaction::advance_now(std::string_view partition, const Position& from,
                                      std::int64_t to, const Progress& progress) {
  const std::int64_t scope = ONCE_TRY(scope_number());
  const std::int64_t number = ONCE_TRY(partition_number(partition));
  const auto fence = static_cast<std::int64_t>(from.fence);
  const auto update = [&]() -> Result<bool> {
    ONCE_TRY(writer().run(
        "UPDATE once_position SET at_offset = ?1, settled_ms = max(settled_ms, ?2), waiting_ms = "
        "?3, "
        "drained_ms = coalesce(?4, drained_ms), "
        "witness_offset = iif(?5 < 0, witness_offset, ?5), "
        "witness_digest = iif(?5 < 0, witness_digest, ?6) "
        "WHERE scope = ?7 AND source_partition = ?8 AND at_offset = ?9 AND fence = ?10",
        {to, progress.settled_ms, progress.waiting_ms,
         progress.drained ? Value(store_.clock_.now_ms()) : Value(nullptr), progress.witness.offset,
         progress.witness.digest, scope, number, from.offset, fence}));
    return writer().changes() == 1;
  };
  if (ONCE_TRY(update())) return {};
  SqliteSession session(writer());
  const Position actual = ONCE_TRY(store_.parts_.positions.read(session, scope_, partition, ""));
  if (actual != Position{} || from != Position{})
    return fail(fenced_error(scope_, partition, from, actual));
  ONCE_TRY(
      writer().run("INSERT INTO once_position (scope, source_partition, at_offset, fence) "
                   "VALUES (?, ?, -1, 0)",
                   {scope, number}));
  (void)ONCE_TRY(update());
  return {};
}

Result<std::vector<Verdict>> SqliteTransaction::admit(std::span<const Entry> entries) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_entries(entries));
  return keep(admit_resuming(entries));
}

Result<std::vector<Verdict>> SqliteTransaction::admit_plain(std::span<const Entry> entries) {
  const std::int64_t horizon = ONCE_TRY(horizon_ms());
  std::vector<Verdict> verdicts(entries.size());
  std::vector<EntryFeed::Row> rows;
  rows.reserve(entries.size());
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (ledger_time(entries[i].born_ms) < horizon) continue;
    const auto partition = ONCE_TRY(partition_number(entries[i].partition));
    rows.push_back({i, partition});
  }
  sort_by_id(entries, rows);
  ONCE_TRY(record(entries, rows, verdicts));

  fresh_.reserve(fresh_.size() + entries.size());
  const Verdict too_old{.kind = Verdict::Kind::too_old, .stored = {}};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (ledger_time(entries[i].born_ms) < horizon)
      // It may have been forgotten: only a record that is still there can say what it is.
      verdicts[i] = ONCE_TRY(look_up(entries[i])).value_or(too_old);
    else if (verdicts[i].kind == Verdict::Kind::fresh)
      remember(entries[i], ONCE_TRY(partition_number(entries[i].partition)));
  }
  return verdicts;
}

// One statement records all ids up to one that is there already; another goes on behind it. OR FAIL
// keeps what it has recorded. (Finding them with an upsert would make SQLite keep a copy of every
// page it touches, in case it had to undo the statement.)
Status SqliteTransaction::record(std::span<const Entry> entries,
                                 std::span<const EntryFeed::Row> rows,
                                 std::vector<Verdict>& verdicts) {
  Statement insert = ONCE_TRY(writer().prepare(
      "INSERT OR FAIL INTO once_ledger "
      "(scope, id, fingerprint, born_ms, recorded_ms, outcome, source_partition, at_offset) "
      "SELECT ?, id, fingerprint, born_ms, ?, 0, partition, offset FROM once_entries"));
  insert.bind(1, ONCE_TRY(scope_number()));
  insert.bind(2, store_.clock_.now_ms());
  EntryFeed& feed = writer().feed();
  const EntryFeed::Opened opened(feed, entries, rows);
  while (!feed.at_end()) {
    const int code = insert.step();
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_CONSTRAINT_PRIMARYKEY || feed.at_end())
      return fail(writer().error(code, "record ids"));
    insert.reset();
    const auto stored = ONCE_TRY(look_up(feed.entry()));
    if (!stored) return fail(Remedy::stop, "corrupt", "an id is in the ledger and not in it");
    verdicts[feed.row().index] = *stored;
    feed.skip();
  }
  return {};
}

Result<std::optional<Verdict>> SqliteTransaction::look_up(const Entry& entry) {
  Statement select =
      ONCE_TRY(writer().prepare("SELECT fingerprint, outcome, result, source_partition, at_offset "
                                "FROM once_ledger WHERE scope = ? AND id = ?"));
  select.bind(1, *scope_number_);
  const CompactId id(entry.id);
  select.bind_blob(2, id.bytes());
  const int code = select.step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return fail(writer().error(code, "look up an id"));
  Verdict verdict{Verdict::Kind::duplicate,
                  {static_cast<Outcome::Kind>(select.number(1)), std::string(select.bytes(2)), 0}};
  if (!contradicts(fingerprint_from(select.bytes(0)), entry.fingerprint)) return verdict;
  verdict.kind = Verdict::Kind::mismatch;
  verdict.first_offset = select.number(4);
  const Rows name =
      ONCE_TRY(writer().query("SELECT name FROM once_name WHERE number = ?", {select.number(3)}));
  if (!name.empty()) verdict.first_partition = std::get<std::string>(name[0].at(0));
  return verdict;
}

void SqliteTransaction::remember(const Entry& entry, std::int64_t partition) {
  fresh_.push_back({partition, entry.offset, ids_.size(), entry.id.size()});
  ids_ += entry.id;
}

std::vector<SqliteTransaction::Fresh>::iterator SqliteTransaction::find_fresh(
    const Delivery& delivery, std::int64_t partition) {
  const auto is_it = [&](const Fresh& fresh) {
    return fresh.offset == delivery.offset && fresh.partition == partition &&
           std::string_view(ids_).substr(fresh.id_at, fresh.id_size) == delivery.id;
  };
  const auto hint =
      fresh_.begin() + static_cast<std::ptrdiff_t>(std::min(fresh_hint_, fresh_.size()));
  auto found = std::find_if(hint, fresh_.end(), is_it);
  if (found == fresh_.end()) {
    found = std::find_if(fresh_.begin(), hint, is_it);
    if (found == hint) return fresh_.end();
  }
  fresh_hint_ = static_cast<std::size_t>(found - fresh_.begin()) + 1;
  return found;
}

Status SqliteTransaction::settle(const Delivery& delivery, const Outcome& outcome) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_settle(outcome));
  return keep(settle_now(delivery, outcome));
}

Status SqliteTransaction::settle_now(const Delivery& delivery, const Outcome& outcome) {
  if (!delivery.id.empty()) ONCE_TRY(settle_fresh(delivery, outcome));
  if (outcome.kind == Outcome::Kind::parked) ONCE_TRY(park(delivery, outcome.detail));
  if (outcome.kind == Outcome::Kind::later) return put_off(delivery, outcome);
  if (delivery.deferral.number == 0) return {};
  return writer().run("DELETE FROM once_deferred WHERE number = ?", {delivery.deferral.number});
}

Status SqliteTransaction::settle_fresh(const Delivery& delivery, const Outcome& outcome) {
  if (fresh_.empty()) return {};
  const std::int64_t partition = ONCE_TRY(partition_number(delivery.partition));
  const auto fresh = find_fresh(delivery, partition);
  if (fresh == fresh_.end()) return {};
  const CompactId id(delivery.id);
  if (outcome.kind == Outcome::Kind::no_effect) {
    fresh_.erase(fresh);
    return writer().run("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                        {*scope_number_, Blob{id.bytes()}});
  }
  if (outcome.kind == Outcome::Kind::applied && outcome.detail.empty()) return {};
  return writer().run(
      "UPDATE once_ledger SET outcome = ?, result = ? WHERE scope = ? AND id = ?",
      {static_cast<int>(outcome.kind), Blob{outcome.detail}, *scope_number_, Blob{id.bytes()}});
}

Status SqliteTransaction::park(const Delivery& delivery, const std::string& reason) {
  const std::int64_t scope = ONCE_TRY(scope_number());
  const std::string headers = encode_headers(delivery);
  ONCE_TRY(writer().run(
      "INSERT INTO once_parked (scope, source_partition, at_offset, attempts, parked_ms, reason, "
      "id, "
      "message_key, body, headers, timestamp_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {scope, delivery.partition, delivery.offset, delivery.attempt, store_.clock_.now_ms(), reason,
       Blob{delivery.id}, Blob{delivery.key}, Blob{delivery.body}, Blob{headers},
       delivery.timestamp_ms}));
  SqliteSession session(writer());
  return store_.log_operation(session, scope, "park", delivery.id, reason);
}

Status SqliteTransaction::enqueue(std::string_view destination, const Message& message) {
  ONCE_TRY(check_open());
  ONCE_TRY(check_destination(destination));
  return keep(enqueue_now(destination, message));
}

Status SqliteTransaction::enqueue_now(std::string_view destination, const Message& message) {
  const std::int64_t number = ONCE_TRY(store_.names_.number_of(writer(), destination));
  const std::string headers = encode_headers(message);
  return writer().run(
      "INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      {number, Blob{message.id}, Blob{view_of(message.key)}, Blob{view_of(message.body)},
       Blob{headers}, message.timestamp_ms});
}

Status SqliteTransaction::commit() {
  ONCE_TRY(check_open());
  auto committed = keep(store_.commit_writing());
  turn_.reset();
  return committed;
}

Status SqliteTransaction::execute(std::string_view statement, std::span<const Value> values,
                                  const Expect& expect) {
  ONCE_TRY(check_open());
  return keep(execute_now(statement, values, expect));
}

Status SqliteTransaction::execute_now(std::string_view statement, std::span<const Value> values,
                                      const Expect& expect) {
  const std::int64_t rows = ONCE_TRY(run_now(statement, values, expect));
  if (expect.rows < 0 || rows == expect.rows) return {};
  return fail(unmet_expectation(store_.where(), statement, rows, expect, message_of(expect)));
}

Result<std::int64_t> SqliteTransaction::run(std::string_view statement,
                                            std::span<const Value> values) {
  ONCE_TRY(check_open());
  return keep(run_now(statement, values, {}));
}

Result<std::int64_t> SqliteTransaction::run_now(std::string_view statement,
                                                std::span<const Value> values,
                                                const Expect& expect) {
  auto made = prepare(statement, values);
  if (!made) return fail(blamed_on(message_of(expect), std::move(made).error()));
  Statement& prepared = *made;
  const std::int64_t before = writer().total_changes();
  std::int64_t rows = 0;
  int code = prepared.step();
  for (; code == SQLITE_ROW; code = prepared.step()) ++rows;
  if (code != SQLITE_DONE)
    return fail(
        blamed_on(message_of(expect),
                  writer().error_of(prepared, code, fmt::format("execute \"{}\"", statement))));
  ONCE_TRY(check_still_open(statement));
  if (prepared.reads_only()) return rows;
  // A statement that changes no rows, such as one of the schema, leaves the count of another.
  return writer().total_changes() == before ? 0 : writer().changes();
}

Result<Rows> SqliteTransaction::query(std::string_view statement, std::span<const Value> values) {
  ONCE_TRY(check_open());
  const auto run = [&]() -> Result<Rows> {
    Statement prepared = ONCE_TRY(prepare(statement, values));
    Rows found = ONCE_TRY(writer().rows(prepared));
    ONCE_TRY(check_still_open(statement));
    return found;
  };
  auto rows = run();
  if (!rows) return keep(Result<Rows>(fail(blamed_on(message_, std::move(rows).error()))));
  return rows;
}

// The authorizer refuses what ends a transaction: should something do so, nothing may follow it.
Status SqliteTransaction::check_still_open(std::string_view statement) {
  if (writer().in_transaction()) return {};
  return fail(Remedy::stop, "transaction_lost",
              fmt::format("{}: \"{}\" ended the transaction, and nothing of the batch counts as "
                          "applied; take it out of the handler",
                          store_.where(), statement));
}

Result<Statement> SqliteTransaction::prepare(std::string_view statement,
                                             std::span<const Value> values) {
  Statement prepared = ONCE_TRY(writer().prepare(statement, Connection::Side::handler));
  if (prepared.parameters() != values.size())
    return fail(Remedy::stop, "sql",
                fmt::format("{}: \"{}\" has {} parameters, {} values were given", store_.where(),
                            statement, prepared.parameters(), values.size()));
  prepared.bind(values);
  return prepared;
}

}  // namespace once
