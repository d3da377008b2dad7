// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.h"
#include "model/ledger.h"
#include "store/postgres/postgres.h"

// The horizon is moved by somebody who is alone with it: whoever admits at that moment holds a
// shared lock until its commit (admit.cc), and whoever admits later sees the new horizon. Then rows
// go, some per call. The ledger has no index by birth, so rows are found in the order of the table:
// old rows stand together at its beginning, since rows are never updated to another place.

namespace once {

Status PostgresStore::move_horizon(std::int64_t scope, std::int64_t horizon_ms) {
  return write([&](PgConnection& connection) -> Status {
    ONCE_TRY(connection.send("SELECT pg_advisory_xact_lock(57223, $1)", {scope}));
    ONCE_TRY(
        connection.send("INSERT INTO once_horizon VALUES ($1, $2) ON CONFLICT (scope) DO UPDATE "
                        "SET horizon_ms = greatest(once_horizon.horizon_ms, excluded.horizon_ms)",
                        {scope, horizon_ms}));
    // The horizon moves all the time: one line says how far, until something else happens.
    ONCE_TRY(
        connection.send("DELETE FROM once_operation WHERE action = 'forget' AND number = "
                        "(SELECT max(number) FROM once_operation WHERE scope = $1)",
                        {scope}));
    return log_operation(connection, scope, "forget", fmt::format("{}", horizon_ms),
                         "the horizon moved");
  });
}

Result<Forgotten> PostgresStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                        std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  const std::int64_t before = ONCE_TRY(this->horizon_ms(scope));
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before) ONCE_TRY(move_horizon(number, horizon_ms));
  ONCE_POINT(store_after_horizon);
  const std::int64_t horizon = std::max(horizon_ms, before);
  const Lease lease = ONCE_TRY(lend());
  const Answer ledger = ONCE_TRY(
      lease->ask("DELETE FROM once_ledger WHERE ctid = ANY (ARRAY (SELECT ctid FROM once_ledger "
                 "WHERE scope = $1 AND born_ms < $2 LIMIT $3))",
                 {number, horizon, rows_max}));
  Forgotten forgotten;
  forgotten.rows = static_cast<std::size_t>(ledger.touched());
  forgotten.more = forgotten.rows == rows_max;
  if (forgotten.more) return forgotten;
  const std::size_t left = rows_max - forgotten.rows;
  const Answer claims = ONCE_TRY(lease->ask(
      "DELETE FROM once_claim WHERE scope = $1 AND id = ANY (ARRAY (SELECT id FROM once_claim "
      "WHERE scope = $1 AND state IN (3, 4) AND born_ms < $2 LIMIT $3))",
      {number, horizon, left}));
  forgotten.rows += static_cast<std::size_t>(claims.touched());
  forgotten.more = static_cast<std::size_t>(claims.touched()) == left;
  return forgotten;
}

}  // namespace once
