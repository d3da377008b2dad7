// SPDX-License-Identifier: Apache-2.0
// Messages that wait: how transactions put them off and have them again, and what people do.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/sql/transaction.h"

namespace once {
namespace {

constexpr std::string_view deferred_columns =
    "number, source_partition, at_offset, attempts, deferred_ms, due_ms, order_token, reason, id, "
    "message_key, body, headers, timestamp_ms";

Result<std::vector<DeferredRecord>> deferred_in(const SqlAnswer& answer) {
  std::vector<DeferredRecord> records;
  for (int row = 0; row < answer.rows(); ++row) {
    DeferredRecord record;
    record.number = answer.number(row, 0);
    record.partition = answer.bytes(row, 1);
    record.offset = answer.number(row, 2);
    record.attempts = static_cast<std::uint32_t>(answer.number(row, 3));
    record.deferred_ms = answer.number(row, 4);
    record.due_ms = answer.number(row, 5);
    record.in_order = !answer.is_null(row, 6);
    record.reason = answer.bytes(row, 7);
    record.message.id = answer.bytes(row, 8);
    record.message.key = answer.bytes(row, 9);
    record.message.body = answer.bytes(row, 10);
    ONCE_TRY(decode_headers(answer.bytes(row, 11), record.message));
    record.message.timestamp_ms = answer.number(row, 12);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

// --- transactions

// Locked until the end of the transaction: a rival waits here, and then finds it gone.
Status ServerTransaction::ask_gone(const Entry& entry, bool& gone) {
  const auto look = [&gone](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    gone = (*answer)->rows() == 0;
    return {};
  };
  return connection().send(
      "SELECT number FROM once_deferred "
      "WHERE number = ? AND scope = ? AND attempts = ? AND id = ? FOR UPDATE",
      {entry.deferral.number, scope_number_, entry.deferral.attempts, Blob{entry.id}}, look);
}

Status ServerTransaction::resume(const Entry& entry, Outcome::Kind from) {
  const CompactId id(entry.id);
  const auto check =
      [this, name = std::string(entry.id)](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if ((*answer)->touched() == 1) return {};
    return fail(resumed_elsewhere(where(), name));
  };
  unchecked_ = true;
  const std::int64_t partition = ONCE_TRY(store_.number_of(entry.partition));
  ONCE_TRY(connection().send(
      fmt::format("UPDATE once_ledger SET outcome = 0, result = NULL, recorded_ms = {}, "
                  "source_partition = ?, at_offset = ? WHERE scope = ? AND id = ? AND outcome = ?",
                  store_.words_.now_ms),
      {partition, entry.offset, scope_number_, Blob{id.bytes()}, static_cast<int>(from)}, check,
      SqlStage::statement));
  if (from == Outcome::Kind::parked)
    ONCE_TRY(connection().send("DELETE FROM once_parked WHERE scope = ? AND id = ?",
                               {scope_number_, Blob{entry.id}}));
  fresh_[std::string(entry.id)] = {partition, entry.offset};
  return {};
}

Status ServerTransaction::ask_behind(const Entry& entry, Verdict& verdict) {
  const std::int64_t before =
      entry.deferral.number != 0 ? entry.deferral.number : std::numeric_limits<std::int64_t>::max();
  const std::string token = order_token(entry.order_key);
  const auto look = [&verdict](Result<std::unique_ptr<SqlAnswer>> answer) -> Status {
    if (!answer) return fail(std::move(answer).error());
    if ((*answer)->rows() == 0) return {};
    verdict.behind_number = (*answer)->number(0, 0);
    verdict.behind_ms = std::max<std::int64_t>(0, (*answer)->number(0, 1));
    return {};
  };
  return connection().send(
      fmt::format("SELECT number, due_ms - {} - ? FROM once_deferred WHERE scope = ? "
                  "AND order_token = ? AND number < ? ORDER BY number DESC LIMIT 1",
                  store_.words_.now_ms),
      {store_.skew_ms(), scope_number_, Blob{token}, before}, look);
}

Status ServerTransaction::put_off(const Delivery& delivery, const Outcome& outcome) {
  const std::string now = fmt::format("{} + ?", store_.words_.now_ms);
  const std::int64_t now_shift_ms = store_.skew_ms();
  const std::int64_t due_shift_ms = now_shift_ms + std::max<std::int64_t>(outcome.after_ms, 0);
  if (delivery.deferral.number != 0)
    return connection().send(
        fmt::format("UPDATE once_deferred SET attempts = ?, deferred_ms = {0}, due_ms = {0}, "
                    "reason = ? WHERE number = ?",
                    now),
        {delivery.attempt, now_shift_ms, due_shift_ms, Blob{outcome.detail},
         delivery.deferral.number});
  const std::string headers = encode_headers(delivery);
  const std::string token = order_token(delivery);
  return connection().send(
      fmt::format("INSERT INTO once_deferred (scope, source_partition, at_offset, attempts, "
                  "deferred_ms, due_ms, order_token, reason, id, message_key, body, headers, "
                  "timestamp_ms) VALUES (?, ?, ?, ?, {0}, {0}, ?, ?, ?, ?, ?, ?, ?)",
                  now),
      {scope_number_, Blob{delivery.partition}, delivery.offset, delivery.attempt, now_shift_ms,
       due_shift_ms, token.empty() ? Value(nullptr) : Value(Blob{token}), Blob{outcome.detail},
       Blob{delivery.id}, Blob{delivery.key}, Blob{delivery.body}, Blob{headers},
       delivery.timestamp_ms});
}

// --- the store

Result<DueMessages> ServerStore::due(std::string_view scope, std::size_t count_max) {
  ONCE_TRY(check_scope(scope));
  const Lease lease = ONCE_TRY(lend());
  const auto next =
      ONCE_TRY(lease->ask(fmt::format("SELECT min(due_ms), {} + ? FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?)",
                                      words_.now_ms),
                          {skew_ms(), Blob{scope}}));
  DueMessages due;
  if (next->is_null(0, 0)) return due;
  const std::int64_t now = next->number(0, 1);
  due.wait_ms = std::max<std::int64_t>(0, next->number(0, 0) - now);
  if (due.wait_ms > 0) return due;
  const auto answer =
      ONCE_TRY(lease->ask(fmt::format("SELECT {} FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                                      "AND due_ms <= ? ORDER BY due_ms, number LIMIT ?",
                                      deferred_columns),
                          {Blob{scope}, now, count_max}));
  due.messages = ONCE_TRY(deferred_in(*answer));
  return due;
}

Result<std::vector<DeferredRecord>> ServerStore::deferred(std::string_view scope,
                                                          std::int64_t after_number,
                                                          std::size_t count_max) {
  const Lease lease = ONCE_TRY(lend());
  const auto answer =
      ONCE_TRY(lease->ask(fmt::format("SELECT {} FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                                      "AND number > ? ORDER BY number LIMIT ?",
                                      deferred_columns),
                          {Blob{scope}, after_number, count_max}));
  return deferred_in(*answer);
}

Status ServerStore::hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  return write([&](SqlConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(lock_deferred(connection, scope, from, number));
      ONCE_TRY(connection.send(
          fmt::format("UPDATE once_deferred SET due_ms = least(due_ms, {} + ?) WHERE number = ?",
                      words_.now_ms),
          {skew_ms(), number}));
      ONCE_TRY(log_operation(connection, from, "hasten", id, deferral_note(number, reason)));
    }
    return {};
  });
}

// Answers its id.
Result<std::string> ServerStore::lock_deferred(SqlConnection& connection, std::string_view scope,
                                               std::int64_t scope_number, std::int64_t number) {
  const auto found = ONCE_TRY(
      connection.ask("SELECT id FROM once_deferred WHERE number = ? AND scope = ? FOR UPDATE",
                     {number, scope_number}));
  if (found->rows() == 0) return fail(missing_deferred(scope, number));
  return found->bytes(0, 0);
}

Status ServerStore::abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  const Outcome outcome = abandoned(reason);
  return write([&](SqlConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(lock_deferred(connection, scope, from, number));
      const CompactId compact(id);
      ONCE_TRY(connection.send("DELETE FROM once_deferred WHERE number = ?", {number}));
      ONCE_TRY(
          connection.send("UPDATE once_ledger SET outcome = ?, result = ? "
                          "WHERE scope = ? AND id = ? AND outcome = ?",
                          {static_cast<int>(outcome.kind), Blob{outcome.detail}, from,
                           Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::later)}));
      ONCE_TRY(log_operation(connection, from, "abandon", id, deferral_note(number, reason)));
    }
    return {};
  });
}

}  // namespace once
