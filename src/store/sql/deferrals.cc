// SPDX-License-Identifier: Apache-2.0
#include "store/sql/deferrals.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"

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

// --- the store

Result<DueMessages> SqlDeferrals::due(std::string_view scope, std::size_t count_max) {
  ONCE_TRY(check_scope(scope));
  const auto next =
      ONCE_TRY(books_.ask(fmt::format("SELECT min(due_ms), {} + ? FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?)",
                                      books_.words().now_ms),
                          {books_.skew_ms(), books_.words().name(scope)}));
  DueMessages due;
  if (next->is_null(0, 0)) return due;
  const std::int64_t now = next->number(0, 1);
  due.wait_ms = std::max<std::int64_t>(0, next->number(0, 0) - now);
  if (due.wait_ms > 0) return due;
  const auto answer =
      ONCE_TRY(books_.ask(fmt::format("SELECT {} FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                                      "AND due_ms <= ? ORDER BY due_ms, number LIMIT ?",
                                      deferred_columns),
                          {books_.words().name(scope), now, count_max}));
  due.messages = ONCE_TRY(deferred_in(*answer));
  return due;
}

Result<std::vector<DeferredRecord>> SqlDeferrals::deferred(std::string_view scope,
                                                           std::int64_t after_number,
                                                           std::size_t count_max) {
  const auto answer =
      ONCE_TRY(books_.ask(fmt::format("SELECT {} FROM once_deferred "
                                      "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                                      "AND number > ? ORDER BY number LIMIT ?",
                                      deferred_columns),
                          {books_.words().name(scope), after_number, count_max}));
  return deferred_in(*answer);
}

Status SqlDeferrals::hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t from = ONCE_TRY(books_.number_of(session, scope));
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(lock_deferred(session, scope, from, number));
      ONCE_TRY(session.send(
          fmt::format("UPDATE once_deferred SET due_ms = {}(due_ms, {} + ?) WHERE number = ?",
                      books_.words().least, books_.words().now_ms),
          {books_.skew_ms(), number}));
      ONCE_TRY(books_.log_operation(session, from, "hasten", id, deferral_note(number, reason)));
    }
    return {};
  });
}

// Answers its id.
Result<std::string> SqlDeferrals::lock_deferred(SqlSession& session, std::string_view scope,
                                                std::int64_t scope_number,
                                                std::int64_t number) const {
  const auto found = ONCE_TRY(
      session.ask(fmt::format("SELECT id FROM once_deferred WHERE number = ? AND scope = ? {}",
                              books_.words().lock),
                  {number, scope_number}));
  if (found->rows() == 0) return fail(missing_deferred(scope, number));
  return found->bytes(0, 0);
}

Status SqlDeferrals::abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                             std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const Outcome outcome = abandoned(reason);
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t from = ONCE_TRY(books_.number_of(session, scope));
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(lock_deferred(session, scope, from, number));
      const CompactId compact(id);
      ONCE_TRY(session.send("DELETE FROM once_deferred WHERE number = ?", {number}));
      ONCE_TRY(
          session.send("UPDATE once_ledger SET outcome = ?, result = ? "
                       "WHERE scope = ? AND id = ? AND outcome = ?",
                       {static_cast<int>(outcome.kind), Blob{outcome.detail}, from,
                        Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::later)}));
      ONCE_TRY(books_.log_operation(session, from, "abandon", id, deferral_note(number, reason)));
    }
    return {};
  });
}

}  // namespace once
