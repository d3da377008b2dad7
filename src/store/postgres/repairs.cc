// SPDX-License-Identifier: Apache-2.0
#include "model/compact_id.h"
#include "model/ledger.h"
#include "store/postgres/postgres.h"

namespace once {

Status PostgresStore::force(std::string_view scope, std::string_view id, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_id(id));
  ONCE_TRY(check_reason(reason));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  return write([&](PgConnection& connection) -> Status {
    const CompactId compact(id);
    const Answer gone = ONCE_TRY(connection.ask(
        "DELETE FROM once_ledger WHERE scope = $1 AND id = $2", {number, Blob{compact.bytes()}}));
    if (gone.touched() == 0) return fail(missing_id(scope, id));
    return log_operation(connection, number, "force", id, reason);
  });
}

Status PostgresStore::replay(std::string_view scope, std::span<const std::int64_t> numbers,
                             std::string_view destination, std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_destination(destination));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  const std::int64_t to = ONCE_TRY(number_of(destination));
  return write([&](PgConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      const Answer moved = ONCE_TRY(connection.ask(
          "WITH gone AS (DELETE FROM once_parked WHERE number = $1 AND scope = $2 RETURNING *), "
          "made AS (INSERT INTO once_outbox (destination, id, key, body, headers, timestamp_ms) "
          "SELECT $3, id, key, body, headers, timestamp_ms FROM gone) SELECT id FROM gone",
          {number, from, to}));
      if (moved.rows() == 0) return fail(missing_parked(scope, number));
      const std::string id = moved.bytes(0, 0);
      const CompactId compact(id);
      // Only what is parked is freed: an id that has had its effect stays in the ledger.
      ONCE_TRY(
          connection.send("DELETE FROM once_ledger WHERE scope = $1 AND id = $2 AND outcome = $3",
                          {from, Blob{compact.bytes()}, static_cast<int>(Outcome::Kind::parked)}));
      ONCE_TRY(
          log_operation(connection, from, "replay", id, replay_note(number, destination, reason)));
    }
    return {};
  });
}

Status PostgresStore::drop(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::int64_t from = ONCE_TRY(number_of(scope));
  return write([&](PgConnection& connection) -> Status {
    for (const std::int64_t number : numbers) {
      const Answer gone = ONCE_TRY(connection.ask(
          "DELETE FROM once_parked WHERE number = $1 AND scope = $2 RETURNING id", {number, from}));
      if (gone.rows() == 0) return fail(missing_parked(scope, number));
      ONCE_TRY(
          log_operation(connection, from, "drop", gone.bytes(0, 0), drop_note(number, reason)));
    }
    return {};
  });
}

}  // namespace once
