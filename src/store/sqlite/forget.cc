// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/failpoint.h"
#include "model/ledger.h"
#include "store/sqlite/sqlite.h"

// Forgetting goes through the ledger in the order of ids, some rows per call, on the reader; what
// is old enough is then deleted by its id in a short transaction. Neighbours share pages, so one
// pass writes each page once, and admits pay for no index. A pass looks at every row of its scope,
// so after each there is a rest: however often it is asked for, forgetting takes a small share of
// the time. docs/decisions/0006-forgetting-scans-the-ledger.md has the numbers.

namespace once {
namespace {

constexpr std::int64_t rest_share = 10;  // a pass is followed by a rest ten times as long

}  // namespace

Result<Forgotten> SqliteStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                      std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(sweep_mutex_);
  Sweep& sweep = sweeps_[std::string(scope)];
  const std::int64_t start_ns = clock_.ticks_ns();
  // A person, maybe in another process, set the horizon back: what was swept was another horizon's.
  const SqlHorizons::Stored stored = ONCE_TRY(parts_.horizons.stored(scope));
  if (stored.ms < std::max(sweep.horizon_ms, sweep.clean_horizon_ms)) sweep = {};
  if (stored.held) horizon_ms = stored.ms;
  // While a pass runs the horizon stays; what is asked for by now is the next pass's.
  if (!sweep.running) {
    const std::int64_t horizon = std::max(horizon_ms, stored.ms);
    if (horizon <= sweep.clean_horizon_ms) return Forgotten{};
    if (start_ns < sweep.rest_until_ns) return Forgotten{0, true};
    ONCE_POINT(store_before_forget);
    if (horizon > stored.ms) ONCE_TRY(parts_.horizons.move(scope, horizon));
    ONCE_POINT(store_after_horizon);
    sweep = {true, {}, horizon, sweep.clean_horizon_ms, 0, 0};
  }
  Findings found = ONCE_TRY(search(scope, sweep, rows_max));
  Forgotten forgotten;
  if (!found.ids.empty()) forgotten.rows = ONCE_TRY(erase(scope, found.ids, sweep.horizon_ms));
  forgotten.rows +=
      ONCE_TRY(forget_claims(scope, sweep.horizon_ms, rows_max - forgotten.rows, found.complete));
  sweep.after_id = std::move(found.last_id);
  const std::int64_t end_ns = clock_.ticks_ns();
  sweep.busy_ns += end_ns - start_ns;
  if (found.complete) {
    sweep.running = false;
    sweep.clean_horizon_ms = sweep.horizon_ms;
    sweep.rest_until_ns = end_ns + rest_share * sweep.busy_ns;
  }
  forgotten.more = sweep.clean_horizon_ms < horizon_ms;
  return forgotten;
}

Result<std::int64_t> stored_horizon_ms(Connection& connection, std::int64_t scope) {
  const Rows rows =
      ONCE_TRY(connection.query("SELECT horizon_ms FROM once_horizon WHERE scope = ?", {scope}));
  return rows.empty() ? 0 : std::get<std::int64_t>(rows[0][0]);
}

Result<SqliteStore::Findings> SqliteStore::search(std::string_view scope, const Sweep& sweep,
                                                  std::size_t rows_max) {
  return on_reader([&](Connection& reader) -> Result<Findings> {
    Findings found{{}, sweep.after_id, false};
    Statement statement = ONCE_TRY(reader.prepare(
        "SELECT id, born_ms, outcome FROM once_ledger "
        "WHERE scope = (SELECT number FROM once_name WHERE name = ?) AND id > ? ORDER BY id"));
    statement.bind_text(1, scope);
    statement.bind_blob(2, sweep.after_id);
    for (std::size_t seen = 0; seen < options_.scan_rows_max; ++seen) {
      const int code = statement.step();
      found.complete = code == SQLITE_DONE;
      if (found.complete) return found;
      if (code != SQLITE_ROW) return fail(reader.error(code, "search the ledger"));
      const bool waits = statement.number(2) == static_cast<int>(Outcome::Kind::later);
      const bool old = statement.number(1) < sweep.horizon_ms && !waits;
      if (old && found.ids.size() == rows_max) return found;
      found.last_id = statement.bytes(0);
      if (old) found.ids.push_back(found.last_id);
    }
    return found;
  });
}

Result<std::size_t> SqliteStore::erase(std::string_view scope, const std::vector<std::string>& ids,
                                       std::int64_t horizon_ms) {
  return on_writer([&](Connection& writer) -> Result<std::size_t> {
    std::size_t rows = 0;
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    // It may have been set back since they were found.
    const std::int64_t below_ms = std::min(horizon_ms, ONCE_TRY(stored_horizon_ms(writer, number)));
    for (const std::string& id : ids) {
      ONCE_TRY(writer.run(
          "DELETE FROM once_ledger WHERE scope = ? AND id = ? AND born_ms < ? AND outcome <> ?",
          {number, Blob{id}, below_ms, static_cast<int>(Outcome::Kind::later)}));
      rows += static_cast<std::size_t>(writer.changes());
    }
    return rows;
  });
}

Result<std::size_t> SqliteStore::forget_claims(std::string_view scope, std::int64_t horizon_ms,
                                               std::size_t rows_max, bool& complete) {
  if (!complete) return 0;  // after the ledger
  return on_writer([&](Connection& writer) -> Result<std::size_t> {
    const std::int64_t number = ONCE_TRY(names_.number_of(writer, scope));
    const std::int64_t stored_ms = ONCE_TRY(stored_horizon_ms(writer, number));
    ONCE_TRY(
        writer.run("DELETE FROM once_claim WHERE scope = ?1 AND id IN "
                   "(SELECT id FROM once_claim WHERE scope = ?1 AND state IN (3, 4) "
                   "AND born_ms < ?2 LIMIT ?3)",
                   {number, std::min(horizon_ms, stored_ms), rows_max}));
    const auto rows = static_cast<std::size_t>(writer.changes());
    complete = rows < rows_max;
    return rows;
  });
}

}  // namespace once
