// SPDX-License-Identifier: Apache-2.0
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
    const auto gone = ONCE_TRY(connection.ask("DELETE FROM once_ledger WHERE scope = ? AND id = ?",
                                              {number, Blob{compact.bytes()}}));
    if (gone->touched() == 0) return fail(missing_id(scope, id));
    return log_operation(connection, number, "force", id, reason);
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

Status ServerStore::correct(std::string_view, const Correction&, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

Status ServerStore::park(std::string_view, std::uint64_t, std::int64_t, std::string_view) {
  return fail(Remedy::stop, "config", "unsupported");
}

}  // namespace once
