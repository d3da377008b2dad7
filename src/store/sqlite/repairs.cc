// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/sqlite/sqlite.h"

// A person's changes take their turn like every other transaction, so that they may be made while
// pipelines are at work on the same file.

namespace once {

Status SqliteStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  return write([&](Connection& writer) -> Status {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    const CompactId compact(id);
    const auto was = ONCE_TRY(ledger_in(writer, scope, compact.bytes(), 1));
    if (was.empty() || was.front().id != id) return fail(missing_id(scope, id));
    ONCE_TRY(writer.run("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                        {number, Blob{compact.bytes()}}));
    return log_operation(number, "force", id, force_note(was.front(), reason));
  });
}

Status SqliteStore::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  return write([&](Connection& writer) -> Status {
    const std::int64_t scope_number = ONCE_TRY(names_.number_of(writer, scope));
    for (const std::int64_t number : numbers) {
      const bool there = ONCE_TRY(replay_one(writer, scope_number, number, destination, reason));
      if (!there) return fail(missing_parked(scope, number));
    }
    return {};
  });
}

// Whether the message was parked.
Result<bool> SqliteStore::replay_one(Connection& writer, std::int64_t scope, std::int64_t number,
                                     std::string_view destination, std::string_view reason) {
  const std::int64_t to = ONCE_TRY(names_.number_of(writer, destination));
  ONCE_TRY(
      writer.run("INSERT INTO once_outbox (destination, id, key, body, headers, timestamp_ms) "
                 "SELECT ?, id, key, body, headers, timestamp_ms FROM once_parked "
                 "WHERE number = ? AND scope = ?",
                 {to, number, scope}));
  const Rows gone = ONCE_TRY(writer.query(
      "DELETE FROM once_parked WHERE number = ? AND scope = ? RETURNING id", {number, scope}));
  if (gone.empty()) return false;
  const auto id = std::get<std::string>(gone[0][0]);
  const CompactId compact(id);
  // Only what is parked is freed: an id that has had its effect stays in the ledger.
  ONCE_TRY(writer.run("DELETE FROM once_ledger WHERE scope = ? AND id = ? AND outcome = ?",
                      {scope, Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::parked)}));
  ONCE_TRY(log_operation(scope, "replay", id, replay_note(number, destination, reason)));
  return true;
}

Status SqliteStore::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                         std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  return write([&](Connection& writer) -> Status {
    const std::int64_t scope_number = ONCE_TRY(names_.number_of(writer, scope));
    for (const std::int64_t number : numbers) {
      const Rows gone = ONCE_TRY(
          writer.query("DELETE FROM once_parked WHERE number = ? AND scope = ? RETURNING id",
                       {number, scope_number}));
      if (gone.empty()) return fail(missing_parked(scope, number));
      ONCE_TRY(log_operation(scope_number, "drop", std::get<std::string>(gone[0][0]),
                             drop_note(number, reason)));
    }
    return {};
  });
}

Status SqliteStore::set_position(Connection& writer, std::int64_t scope, const SetPosition& to) {
  const std::int64_t partition = ONCE_TRY(names_.number_of(writer, to.partition));
  return writer.run(
      fmt::format(
          "INSERT INTO once_position (scope, partition, offset, fence) VALUES (?, ?, ?, ?) "
          "ON CONFLICT (scope, partition) DO UPDATE SET offset = excluded.offset, fence = {}, "
          "source_identity = excluded.source_identity, settled_ms = excluded.settled_ms, "
          "waiting_ms = excluded.waiting_ms, drained_ms = excluded.drained_ms, "
          "witness_offset = excluded.witness_offset, witness_digest = excluded.witness_digest",
          grown_fence),
      {scope, partition, to.offset, first_fence()});
}

Status SqliteStore::restart_destination(Connection& writer, const RestartDestination& restart) {
  const std::int64_t name = ONCE_TRY(names_.number_of(writer, restart.destination));
  const std::int64_t relay = ONCE_TRY(names_.number_of(writer, relay_scope));
  ONCE_TRY(
      writer.run("UPDATE once_outbox SET partition = NULL, sequence = NULL "
                 "WHERE destination = ? AND sequence IS NOT NULL",
                 {name}));
  ONCE_TRY(writer.run("DELETE FROM once_route WHERE destination = ?", {name}));
  return writer.run(
      fmt::format("INSERT INTO once_position (scope, partition, offset, fence) VALUES (?, ?, 0, ?) "
                  "ON CONFLICT (scope, partition) DO UPDATE SET offset = offset + 1, fence = {}",
                  grown_fence),
      {relay, name, first_fence()});
}

Status SqliteStore::drop_scope(Connection& writer, std::int64_t scope) {
  for (const char* table : {"once_position", "once_ledger", "once_horizon", "once_parked",
                            "once_claim", "once_deferred", "once_operation"})
    ONCE_TRY(writer.run(fmt::format("DELETE FROM {} WHERE scope = ?", table), {scope}));
  return {};
}

Status SqliteStore::correct(std::string_view scope, const Correction& correction,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  ONCE_TRY(check_correction(correction));
  return write([&](Connection& writer) -> Status {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    if (const auto* to = std::get_if<SetPosition>(&correction))
      ONCE_TRY(set_position(writer, number, *to));
    if (const auto* horizon = std::get_if<SetHorizon>(&correction))
      ONCE_TRY(writer.run(
          "INSERT OR REPLACE INTO once_horizon (scope, horizon_ms, held) VALUES (?, ?, 1)",
          {number, horizon->horizon_ms}));
    if (std::holds_alternative<ReleaseHorizon>(correction))
      ONCE_TRY(writer.run("UPDATE once_horizon SET held = 0 WHERE scope = ?", {number}));
    if (const auto* restart = std::get_if<RestartDestination>(&correction))
      ONCE_TRY(restart_destination(writer, *restart));
    if (const auto* pending = std::get_if<DropPending>(&correction)) {
      const std::int64_t name = ONCE_TRY(names_.number_of(writer, pending->destination));
      ONCE_TRY(
          writer.run("INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
                     "SELECT ?, ?, 'drop', id, ? FROM once_outbox WHERE destination = ? "
                     "ORDER BY number LIMIT ?",
                     {number, clock_.now_ms(), drop_pending_note(pending->destination, reason),
                      name, dropped_ids_max}));
      ONCE_TRY(writer.run("DELETE FROM once_outbox WHERE destination = ?", {name}));
      ONCE_TRY(restart_destination(writer, {pending->destination}));
    }
    if (std::holds_alternative<DropScope>(correction)) ONCE_TRY(drop_scope(writer, number));
    const std::int64_t log = ONCE_TRY(names_.number_of(writer, log_scope_of(correction, scope)));
    ONCE_TRY(log_operation(log, action_of(correction), subject_of(correction, scope), reason));
    return trim_operations(log);
  });
}

}  // namespace once
