// SPDX-License-Identifier: Apache-2.0
// Messages that wait: how transactions put them off and have them again.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/sql/transaction.h"

namespace once {

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
                  store_.words().now_ms),
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
                  store_.words().now_ms),
      {store_.skew_ms(), scope_number_, Blob{token}, before}, look);
}

Status ServerTransaction::put_off(const Delivery& delivery, const Outcome& outcome) {
  const std::string now = fmt::format("{} + ?", store_.words().now_ms);
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

}  // namespace once
