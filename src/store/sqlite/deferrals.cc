// SPDX-License-Identifier: Apache-2.0
// Messages that wait: how transactions put them off and have them again, and what people do.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/transaction.h"

namespace once {
namespace {

constexpr std::string_view deferred_columns =
    "number, partition, offset, attempts, deferred_ms, due_ms, order_token IS NOT NULL, reason, "
    "id, key, body, headers, timestamp_ms";

Result<std::vector<DeferredRecord>> read_deferred(Connection& reader, Statement& statement) {
  std::vector<DeferredRecord> records;
  int code = statement.step();
  for (; code == SQLITE_ROW; code = statement.step()) {
    DeferredRecord record;
    record.number = statement.number(0);
    record.partition = statement.bytes(1);
    record.offset = statement.number(2);
    record.attempts = static_cast<std::uint32_t>(statement.number(3));
    record.deferred_ms = statement.number(4);
    record.due_ms = statement.number(5);
    record.in_order = statement.number(6) != 0;
    record.reason = statement.bytes(7);
    record.message.id = statement.bytes(8);
    record.message.key = statement.bytes(9);
    record.message.body = statement.bytes(10);
    ONCE_TRY(decode_headers(statement.bytes(11), record.message));
    record.message.timestamp_ms = statement.number(12);
    records.push_back(std::move(record));
  }
  if (code != SQLITE_DONE) return fail(reader.error(code, "read the messages that wait"));
  return records;
}

}  // namespace

// --- transactions

Status SqliteTransaction::ask_gone(const Entry& entry, bool& gone) {
  const std::int64_t scope = ONCE_TRY(scope_number());
  const Rows rows = ONCE_TRY(writer().query(
      "SELECT 1 FROM once_deferred WHERE number = ? AND scope = ? AND attempts = ? AND id = ?",
      {entry.deferral.number, scope, entry.deferral.attempts, Blob{entry.id}}));
  gone = rows.empty();
  return {};
}

Status SqliteTransaction::resume(const Entry& entry, Outcome::Kind from) {
  const std::int64_t scope = ONCE_TRY(scope_number());
  const std::int64_t partition = ONCE_TRY(partition_number(entry.partition));
  const CompactId id(entry.id);
  ONCE_TRY(
      writer().run("UPDATE once_ledger SET outcome = 0, result = NULL, recorded_ms = ?, "
                   "partition = ?, offset = ? WHERE scope = ? AND id = ? AND outcome = ?",
                   {store_.clock_.now_ms(), partition, entry.offset, scope, Blob{id.bytes()},
                    static_cast<int>(from)}));
  if (writer().changes() != 1) return fail(resumed_elsewhere(store_.traits().name, entry.id));
  if (from == Outcome::Kind::parked)
    ONCE_TRY(writer().run("DELETE FROM once_parked WHERE scope = ? AND id = ?",
                          {scope, Blob{entry.id}}));
  remember(entry, partition);
  return {};
}

Status SqliteTransaction::ask_behind(const Entry& entry, Verdict& verdict) {
  const std::int64_t scope = ONCE_TRY(scope_number());
  const std::int64_t before =
      entry.deferral.number != 0 ? entry.deferral.number : std::numeric_limits<std::int64_t>::max();
  const std::string token = order_token(entry.order_key);
  const Rows rows = ONCE_TRY(writer().query(
      "SELECT number, due_ms FROM once_deferred "
      "WHERE scope = ? AND order_token = ? AND number < ? ORDER BY number DESC LIMIT 1",
      {scope, Blob{token}, before}));
  if (rows.empty()) return {};
  verdict.behind_number = std::get<std::int64_t>(rows[0][0]);
  verdict.behind_ms =
      std::max<std::int64_t>(0, std::get<std::int64_t>(rows[0][1]) - store_.clock_.now_ms());
  return {};
}

Status SqliteTransaction::put_off(const Delivery& delivery, const Outcome& outcome) {
  const std::int64_t now_ms = store_.clock_.now_ms();
  const std::int64_t due_ms = now_ms + std::max<std::int64_t>(outcome.after_ms, 0);
  if (delivery.deferral.number != 0)
    return writer().run(
        "UPDATE once_deferred SET attempts = ?, deferred_ms = ?, due_ms = ?, reason = ? "
        "WHERE number = ?",
        {delivery.attempt, now_ms, due_ms, outcome.detail, delivery.deferral.number});
  const std::int64_t scope = ONCE_TRY(scope_number());
  const std::string headers = encode_headers(delivery);
  const std::string token = order_token(delivery);
  return writer().run(
      "INSERT INTO once_deferred (scope, partition, offset, attempts, deferred_ms, due_ms, "
      "order_token, reason, id, key, body, headers, timestamp_ms) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {scope, delivery.partition, delivery.offset, delivery.attempt, now_ms, due_ms,
       token.empty() ? Value(nullptr) : Value(Blob{token}), outcome.detail, Blob{delivery.id},
       Blob{delivery.key}, Blob{delivery.body}, Blob{headers}, delivery.timestamp_ms});
}

// --- the store

Result<DueMessages> SqliteStore::due(std::string_view scope, std::size_t count_max) {
  ONCE_TRY(check_scope(scope));
  return read([&](Connection& reader) -> Result<DueMessages> {
    const std::int64_t now_ms = clock_.now_ms();
    DueMessages due;
    const Rows next =
        ONCE_TRY(reader.query("SELECT min(due_ms) FROM once_deferred "
                              "WHERE scope = (SELECT number FROM once_name WHERE name = ?)",
                              {scope}));
    const auto* first_ms = std::get_if<std::int64_t>(&next[0][0]);
    if (first_ms == nullptr) return due;
    due.wait_ms = std::max<std::int64_t>(0, *first_ms - now_ms);
    if (due.wait_ms > 0) return due;
    Statement statement = ONCE_TRY(reader.prepare(
        fmt::format("SELECT {} FROM once_deferred "
                    "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND due_ms <= ? "
                    "ORDER BY due_ms, number LIMIT ?",
                    deferred_columns)));
    statement.bind_text(1, scope);
    statement.bind(2, now_ms);
    statement.bind(3, static_cast<std::int64_t>(count_max));
    due.messages = ONCE_TRY(read_deferred(reader, statement));
    return due;
  });
}

Result<std::vector<DeferredRecord>> SqliteStore::deferred(std::string_view scope,
                                                          std::int64_t after_number,
                                                          std::size_t count_max) {
  return read([&](Connection& reader) -> Result<std::vector<DeferredRecord>> {
    Statement statement = ONCE_TRY(reader.prepare(
        fmt::format("SELECT {} FROM once_deferred "
                    "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND number > ? "
                    "ORDER BY number LIMIT ?",
                    deferred_columns)));
    statement.bind_text(1, scope);
    statement.bind(2, after_number);
    statement.bind(3, static_cast<std::int64_t>(count_max));
    return read_deferred(reader, statement);
  });
}

Status SqliteStore::hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  return write([&](Connection& writer) -> Status {
    const std::int64_t scope_number = ONCE_TRY(names_.number_of(writer, scope));
    for (const std::int64_t number : numbers) {
      const Rows found =
          ONCE_TRY(writer.query("UPDATE once_deferred SET due_ms = min(due_ms, ?) "
                                "WHERE number = ? AND scope = ? RETURNING id",
                                {clock_.now_ms(), number, scope_number}));
      if (found.empty()) return fail(missing_deferred(scope, number));
      ONCE_TRY(log_operation(scope_number, "hasten", std::get<std::string>(found[0][0]),
                             deferral_note(number, reason)));
    }
    return {};
  });
}

Status SqliteStore::abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  return write([&](Connection& writer) -> Status {
    const std::int64_t scope_number = ONCE_TRY(names_.number_of(writer, scope));
    const Outcome outcome = abandoned(reason);
    for (const std::int64_t number : numbers) {
      const Rows gone = ONCE_TRY(
          writer.query("DELETE FROM once_deferred WHERE number = ? AND scope = ? RETURNING id",
                       {number, scope_number}));
      if (gone.empty()) return fail(missing_deferred(scope, number));
      const auto id = std::get<std::string>(gone[0][0]);
      const CompactId compact(id);
      ONCE_TRY(
          writer.run("UPDATE once_ledger SET outcome = ?, result = ? "
                     "WHERE scope = ? AND id = ? AND outcome = ?",
                     {static_cast<int>(outcome.kind), Blob{outcome.detail}, scope_number,
                      Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::later)}));
      ONCE_TRY(log_operation(scope_number, "abandon", id, deferral_note(number, reason)));
    }
    return {};
  });
}

}  // namespace once
