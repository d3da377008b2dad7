// SPDX-License-Identifier: Apache-2.0
// Messages that wait: how transactions put them off and have them again.
#include <algorithm>
#include <limits>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "model/message_row.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/transaction.h"

namespace once {

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
                   "source_partition = ?, at_offset = ? WHERE scope = ? AND id = ? AND outcome = ?",
                   {store_.clock_.now_ms(), partition, entry.offset, scope, Blob{id.bytes()},
                    static_cast<int>(from)}));
  if (writer().changes() != 1) return fail(resumed_elsewhere(store_.where(), entry.id));
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
      "INSERT INTO once_deferred (scope, source_partition, at_offset, attempts, deferred_ms, "
      "due_ms, "
      "order_token, reason, id, message_key, body, headers, timestamp_ms) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {scope, delivery.partition, delivery.offset, delivery.attempt, now_ms, due_ms,
       token.empty() ? Value(nullptr) : Value(Blob{token}), outcome.detail, Blob{delivery.id},
       Blob{delivery.key}, Blob{delivery.body}, Blob{headers}, delivery.timestamp_ms});
}

}  // namespace once
