// SPDX-License-Identifier: Apache-2.0
#include "store/sql/repairs.h"

#include <fmt/format.h>
#include <once/outbox.h>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/sql/records.h"

namespace once {

Status SqlRepairs::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    const CompactId compact(id);
    const auto was =
        ONCE_TRY(session.ask(fmt::format("SELECT {} FROM once_ledger WHERE scope = ? AND id = ? {}",
                                         record_columns, books_.words().lock),
                             {number, Blob{compact.bytes()}}));
    if (was->rows() == 0) return fail(missing_id(scope, id));
    ONCE_TRY(session.send("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                          {number, Blob{compact.bytes()}}));
    return books_.log_operation(session, number, "force", id,
                                force_note(ledger_record_in(*was, 0), reason));
  });
}

// Takes a message out of the parked ones; answers its id.
Result<std::string> SqlRepairs::unpark(SqlSession& session, std::string_view scope,
                                       std::int64_t scope_number, std::int64_t number) const {
  const auto found = ONCE_TRY(
      session.ask(fmt::format("SELECT id FROM once_parked WHERE number = ? AND scope = ? {}",
                              books_.words().lock),
                  {number, scope_number}));
  if (found->rows() == 0) return fail(missing_parked(scope, number));
  ONCE_TRY(session.send("DELETE FROM once_parked WHERE number = ?", {number}));
  return found->bytes(0, 0);
}

Status SqlRepairs::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                          std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t from = ONCE_TRY(books_.number_of(session, scope));
    const std::int64_t to = ONCE_TRY(books_.number_of(session, destination));
    for (const std::int64_t number : numbers) {
      ONCE_TRY(session.send(
          "INSERT INTO once_outbox (destination, id, message_key, body, headers, timestamp_ms) "
          "SELECT ?, id, message_key, body, headers, timestamp_ms FROM once_parked "
          "WHERE number = ? AND scope = ?",
          {to, number, from}));
      const std::string id = ONCE_TRY(unpark(session, scope, from, number));
      const CompactId compact(id);
      // Only what is parked is freed: an id that has had its effect stays in the ledger.
      ONCE_TRY(
          session.send("DELETE FROM once_ledger WHERE scope = ? AND id = ? AND outcome = ?",
                       {from, Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::parked)}));
      ONCE_TRY(books_.log_operation(session, from, "replay", id,
                                    replay_note(number, destination, reason)));
    }
    return {};
  });
}

Status SqlRepairs::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                        std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t from = ONCE_TRY(books_.number_of(session, scope));
    for (const std::int64_t number : numbers) {
      const std::string id = ONCE_TRY(unpark(session, scope, from, number));
      ONCE_TRY(books_.log_operation(session, from, "drop", id, drop_note(number, reason)));
    }
    return {};
  });
}

// The owner is fenced, and what was known of the topic belongs to another place in it.
Status SqlRepairs::set_position(SqlSession& session, std::int64_t scope, const SetPosition& to) {
  const std::int64_t partition = ONCE_TRY(books_.number_of(session, to.partition));
  const SqlPositions::Locked locked = ONCE_TRY(positions_.lock(session, scope, partition));
  const PartitionRecord none;
  const Witness& witness = none.position.witness;
  return session.send(
      "UPDATE once_position SET at_offset = ?, fence = ?, source_identity = ?, "
      "settled_ms = ?, waiting_ms = ?, drained_ms = ?, witness_offset = ?, witness_digest = ? "
      "WHERE scope = ? AND source_partition = ?",
      {to.offset, locked.next_fence, Blob{none.source_identity}, none.settled_ms, none.waiting_ms,
       none.drained_ms, witness.offset, witness.digest, scope, partition});
}

Status SqlRepairs::set_horizon(SqlSession& session, std::int64_t scope, std::int64_t horizon_ms) {
  ONCE_TRY(books_.lock_horizon(session, scope));
  return session.send("UPDATE once_horizon SET horizon_ms = ?, held = 1 WHERE scope = ?",
                      {horizon_ms, scope});
}

Status SqlRepairs::restart_destination(SqlSession& session, std::string_view destination) {
  const std::int64_t relay = ONCE_TRY(books_.number_of(session, relay_scope));
  const std::int64_t name = ONCE_TRY(books_.number_of(session, destination));
  const SqlPositions::Locked locked = ONCE_TRY(positions_.lock(session, relay, name));
  ONCE_TRY(
      session.send("UPDATE once_position SET at_offset = at_offset + 1, fence = ? "
                   "WHERE scope = ? AND source_partition = ?",
                   {locked.next_fence, relay, name}));
  ONCE_TRY(session.send(
      fmt::format("UPDATE once_outbox SET target_partition = NULL, target_sequence = NULL "
                  "WHERE destination = ? AND {} BETWEEN 0 AND ?",
                  books_.words().send_order),
      {name, sequence_max}));
  return session.send("DELETE FROM once_route WHERE destination = ?", {name});
}

Status SqlRepairs::drop_pending(SqlSession& session, std::int64_t scope,
                                std::string_view destination, std::string_view reason) {
  const SqlWords& words = books_.words();
  ONCE_TRY(restart_destination(session, destination));  // fences the relay first
  const std::int64_t name = ONCE_TRY(books_.number_of(session, destination));
  const std::string note = drop_pending_note(destination, reason);
  ONCE_TRY(
      session.send(fmt::format("INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
                               "SELECT ?, {}, ?, id, ? FROM once_outbox WHERE destination = ? "
                               "ORDER BY number LIMIT {}",
                               words.now_ms, dropped_ids_max),
                   {scope, words.name("drop"), words.name(note), name}));
  return session.send("DELETE FROM once_outbox WHERE destination = ?", {name});
}

// Positions first: this waits for an owner that is about to commit, and fences it.
Status SqlRepairs::drop_scope(SqlSession& session, std::int64_t scope) {
  for (const char* table : {"once_position", "once_ledger", "once_horizon", "once_parked",
                            "once_claim", "once_deferred", "once_operation"})
    ONCE_TRY(session.send(fmt::format("DELETE FROM {} WHERE scope = ?", table), {scope}));
  return {};
}

Status SqlRepairs::correct(std::string_view scope, const Correction& correction,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  ONCE_TRY(check_correction(correction));
  return books_.write([&](SqlSession& session) -> Status {
    const std::int64_t number = ONCE_TRY(books_.number_of(session, scope));
    const std::int64_t log = ONCE_TRY(books_.number_of(session, log_scope_of(correction, scope)));
    if (const auto* to = std::get_if<SetPosition>(&correction))
      ONCE_TRY(set_position(session, number, *to));
    if (const auto* horizon = std::get_if<SetHorizon>(&correction))
      ONCE_TRY(set_horizon(session, number, horizon->horizon_ms));
    if (std::holds_alternative<ReleaseHorizon>(correction))
      ONCE_TRY(session.send("UPDATE once_horizon SET held = 0 WHERE scope = ?", {number}));
    if (const auto* restart = std::get_if<RestartDestination>(&correction))
      ONCE_TRY(restart_destination(session, restart->destination));
    if (const auto* pending = std::get_if<DropPending>(&correction))
      ONCE_TRY(drop_pending(session, number, pending->destination, reason));
    if (std::holds_alternative<DropScope>(correction)) ONCE_TRY(drop_scope(session, number));
    ONCE_TRY(books_.log_operation(session, log, action_of(correction),
                                  subject_of(correction, scope), reason));
    return SqlBooks::trim_operations(session, log);
  });
}

}  // namespace once
