// SPDX-License-Identifier: Apache-2.0
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
    ONCE_TRY(writer.run("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                        {number, Blob{compact.bytes()}}));
    if (writer.changes() == 0) return fail(missing_id(scope, id));
    return log_operation(number, "force", id, reason);
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

Status SqliteStore::correct(std::string_view, const Correction&, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

Status SqliteStore::park(std::string_view, std::uint64_t, std::int64_t, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

}  // namespace once
