// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/sql/server_store.h"

namespace once {

Status ServerStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  return write([&](SqlConnection& connection) -> Status {
    const CompactId compact(id);
    const auto was = ONCE_TRY(connection.ask(
        fmt::format("SELECT {} FROM once_ledger WHERE scope = ? AND id = ? FOR UPDATE",
                    record_columns),
        {number, Blob{compact.bytes()}}));
    if (was->rows() == 0) return fail(missing_id(scope, id));
    ONCE_TRY(connection.send("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                             {number, Blob{compact.bytes()}}));
    return log_operation(connection, number, "force", id,
                         force_note(ledger_record_in(*was, 0), reason));
  });
}

// Takes a message out of the parked ones; answers its id.
Result<std::string> ServerStore::unpark(SqlConnection& connection, std::string_view scope,
                                        std::int64_t scope_number, std::int64_t number) {
  const auto found = ONCE_TRY(
      connection.ask("SELECT id FROM once_parked WHERE number = ? AND scope = ? FOR UPDATE",
                     {number, scope_number}));
  if (found->rows() == 0) return fail(missing_parked(scope, number));
  ONCE_TRY(connection.send("DELETE FROM once_parked WHERE number = ?", {number}));
  return found->bytes(0, 0);
}

Status ServerStore::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  const std::int64_t to = ONCE_TRY(number_of(destination));
  return write([&](SqlConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      ONCE_TRY(connection.send(
          "INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms) "
          "SELECT ?, id, message_key, body, headers, timestamp_ms FROM once_parked "
          "WHERE number = ? AND scope = ?",
          {to, number, from}));
      const std::string id = ONCE_TRY(unpark(connection, scope, from, number));
      const CompactId compact(id);
      // Only what is parked is freed: an id that has had its effect stays in the ledger.
      ONCE_TRY(
          connection.send("DELETE FROM once_ledger WHERE scope = ? AND id = ? AND outcome = ?",
                          {from, Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::parked)}));
      ONCE_TRY(
          log_operation(connection, from, "replay", id, replay_note(number, destination, reason)));
    }
    return {};
  });
}

Status ServerStore::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                         std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  return write([&](SqlConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(unpark(connection, scope, from, number));
      ONCE_TRY(log_operation(connection, from, "drop", id, drop_note(number, reason)));
    }
    return {};
  });
}

// The owner is fenced, and what was known of the topic belongs to another place in it.
Status ServerStore::set_position(SqlConnection& connection, std::int64_t scope,
                                 std::int64_t partition, std::int64_t offset) {
  const Locked locked = ONCE_TRY(lock_position(connection, scope, partition));
  const PartitionRecord none;
  const Witness& witness = none.position.witness;
  return connection.send(
      "UPDATE once_position SET at_offset = ?, fence = ?, source_identity = ?, "
      "settled_ms = ?, waiting_ms = ?, drained_ms = ?, witness_offset = ?, witness_digest = ? "
      "WHERE scope = ? AND source_partition = ?",
      {offset, locked.next_fence, Blob{none.source_identity}, none.settled_ms, none.waiting_ms,
       none.drained_ms, witness.offset, witness.digest, scope, partition});
}

Status ServerStore::set_horizon(SqlConnection& connection, std::int64_t scope,
                                std::int64_t horizon_ms) {
  ONCE_TRY(lock_horizon(connection, scope));
  return connection.send("UPDATE once_horizon SET horizon_ms = ?, held = 1 WHERE scope = ?",
                         {horizon_ms, scope});
}

Status ServerStore::restart_destination(SqlConnection& connection, std::string_view destination) {
  const std::int64_t relay = ONCE_TRY(number_of(relay_scope));
  const std::int64_t name = ONCE_TRY(number_of(destination));
  const Locked locked = ONCE_TRY(lock_position(connection, relay, name));
  ONCE_TRY(
      connection.send("UPDATE once_position SET at_offset = at_offset + 1, fence = ? "
                      "WHERE scope = ? AND source_partition = ?",
                      {locked.next_fence, relay, name}));
  ONCE_TRY(connection.send(
      fmt::format("UPDATE once_outbox SET target_partition = NULL, target_sequence = NULL "
                  "WHERE destination = ? AND {} BETWEEN 0 AND ?",
                  words_.send_order),
      {name, sequence_max}));
  return connection.send("DELETE FROM once_route WHERE destination = ?", {name});
}

// Positions first: this waits for an owner that is about to commit, and fences it.
Status ServerStore::drop_scope(SqlConnection& connection, std::int64_t scope) {
  for (const char* table : {"once_position", "once_ledger", "once_horizon", "once_parked",
                            "once_claim", "once_deferred", "once_operation"})
    ONCE_TRY(connection.send(fmt::format("DELETE FROM {} WHERE scope = ?", table), {scope}));
  return {};
}

Status ServerStore::correct(std::string_view scope, const Correction& correction,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  ONCE_TRY(check_correction(correction));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  const std::int64_t log = ONCE_TRY(number_of(log_scope_of(correction, scope)));
  return write([&](SqlConnection& connection) -> Status {
    if (const auto* to = std::get_if<SetPosition>(&correction)) {
      const std::int64_t partition = ONCE_TRY(number_of(to->partition));
      ONCE_TRY(set_position(connection, number, partition, to->offset));
    }
    if (const auto* horizon = std::get_if<SetHorizon>(&correction))
      ONCE_TRY(set_horizon(connection, number, horizon->horizon_ms));
    if (std::holds_alternative<ReleaseHorizon>(correction))
      ONCE_TRY(connection.send("UPDATE once_horizon SET held = 0 WHERE scope = ?", {number}));
    if (const auto* restart = std::get_if<RestartDestination>(&correction))
      ONCE_TRY(restart_destination(connection, restart->destination));
    if (const auto* pending = std::get_if<DropPending>(&correction)) {
      ONCE_TRY(restart_destination(connection, pending->destination));  // fences the relay first
      const std::int64_t name = ONCE_TRY(number_of(pending->destination));
      ONCE_TRY(connection.send(
          fmt::format("INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
                      "SELECT ?, {}, ?, id, ? FROM once_outbox WHERE destination = ? "
                      "ORDER BY number LIMIT {}",
                      words_.now_ms, dropped_ids_max),
          {number, Blob{"drop"}, Blob{drop_pending_note(pending->destination, reason)}, name}));
      ONCE_TRY(connection.send("DELETE FROM once_outbox WHERE destination = ?", {name}));
    }
    if (std::holds_alternative<DropScope>(correction)) ONCE_TRY(drop_scope(connection, number));
    ONCE_TRY(log_operation(connection, log, action_of(correction), subject_of(correction, scope),
                           reason));
    return trim_operations(connection, log);
  });
}

}  // namespace once
