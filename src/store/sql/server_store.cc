// SPDX-License-Identifier: Apache-2.0
#include "store/sql/server_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.h"
#include "model/ledger.h"

namespace once {

StoreTraits ServerStore::traits() const {
  return {where_, StoreTraits::Durability::power, true, false, true};
}

Result<ServerStore::Lease> ServerStore::lend() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(connection));
    }
  }
  auto connection = ONCE_TRY(connect());
  return Lease(*this, std::move(connection));
}

void ServerStore::give_back(std::unique_ptr<SqlConnection> connection) {
  const bool usable = connection->reset();
  const std::lock_guard lock(mutex_);
  // One broken connection usually means that the server went away: the idle ones are of no use.
  if (!usable) idle_.clear();
  if (usable && idle_.size() < options_.idle_connections_max)
    idle_.push_back(std::move(connection));
}

Result<std::int64_t> ServerStore::number_of(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
  }
  const Lease lease = ONCE_TRY(lend());
  ONCE_TRY(lease->send(
      fmt::format("{} once_name (name) VALUES (?) {}", words_.insert, words_.skip_present),
      {Blob{name}}));
  const auto found =
      ONCE_TRY(lease->ask("SELECT number FROM once_name WHERE name = ?", {Blob{name}}));
  if (found->rows() != 1)
    return fail(Remedy::retry, "conflict", where_ + ": a name was taken away; try again");
  const std::lock_guard lock(mutex_);
  return names_.emplace(name, found->number(0, 0)).first->second;
}

Result<std::int64_t> ServerStore::now_ms(SqlConnection& connection) {
  const auto answer = ONCE_TRY(connection.ask(fmt::format("SELECT {}", words_.now_ms)));
  return answer->number(0, 0) + skew_ms();
}

Result<std::unique_ptr<Transaction>> ServerStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  Lease lease = ONCE_TRY(lend());
  ONCE_TRY(lease->send("BEGIN"));
  return make_transaction(number, scope, std::move(lease));
}

Result<Position> ServerStore::take(std::string_view scope, std::string_view partition,
                                   std::string_view) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const std::int64_t scope_number = ONCE_TRY(number_of(scope));
  const std::int64_t partition_number = ONCE_TRY(number_of(partition));
  return write([&](SqlConnection& connection) -> Result<Position> {
    constexpr std::string_view grow =
        "UPDATE once_position SET fence = fence + 1 WHERE scope = ? AND source_partition = ?";
    const auto grown = ONCE_TRY(connection.ask(grow, {scope_number, partition_number}));
    if (grown->touched() == 0) {  // nobody ever took it
      ONCE_TRY(connection.send(fmt::format("{} once_position VALUES (?, ?, -1, 0) {}",
                                           words_.insert, words_.skip_present),
                               {scope_number, partition_number}));
      ONCE_TRY(connection.send(grow, {scope_number, partition_number}));
    }
    const auto answer = ONCE_TRY(connection.ask(
        "SELECT at_offset, fence FROM once_position WHERE scope = ? AND source_partition = ?",
        {scope_number, partition_number}));
    const Position position{answer->number(0, 0), static_cast<std::uint64_t>(answer->number(0, 1))};
    ONCE_TRY(log_operation(connection, scope_number, "take", partition,
                           fmt::format("fence {}", position.fence)));
    return position;
  });
}

// Waits for whoever is moving it: a commit whose answer was lost may still be on its way, and who
// looks it up must not be answered before it has happened or cannot happen any more.
Result<Position> ServerStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  return read_position(scope, partition, words_.share);
}

Result<Position> ServerStore::read_position(std::string_view scope, std::string_view partition,
                                            std::string_view how) {
  const Lease lease = ONCE_TRY(lend());
  const auto answer = ONCE_TRY(lease->ask(
      fmt::format("SELECT at_offset, fence FROM once_position "
                  "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                  "AND source_partition = (SELECT number FROM once_name WHERE name = ?) {}",
                  how),
      {Blob{scope}, Blob{partition}}));
  if (answer->rows() == 0) return Position{};
  return Position{answer->number(0, 0), static_cast<std::uint64_t>(answer->number(0, 1))};
}

Status ServerStore::log_operation(SqlConnection& connection, std::int64_t scope,
                                  std::string_view action, std::string_view subject,
                                  std::string_view reason) {
  return connection.send(
      fmt::format("INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
                  "VALUES (?, {}, ?, ?, ?)",
                  words_.now_ms),
      {scope, Blob{action}, Blob{subject}, Blob{reason}});
}

// --- forgetting. The horizon is moved by somebody who is alone with it: whoever admits at that
// moment shares a lock until its commit, and whoever admits later sees the new horizon. Then rows
// go, some per call.

Status ServerStore::move_horizon(std::int64_t scope, std::int64_t horizon_ms) {
  return write([&](SqlConnection& connection) -> Status {
    ONCE_TRY(lock_horizon(connection, scope));
    ONCE_TRY(
        connection.send("UPDATE once_horizon SET horizon_ms = ? WHERE scope = ? AND horizon_ms < ?",
                        {horizon_ms, scope, horizon_ms}));
    // The horizon moves all the time: one line says how far, until something else happens.
    ONCE_TRY(connection.send(
        "DELETE FROM once_operation WHERE action = ? AND number = (SELECT newest FROM "
        "(SELECT max(number) AS newest FROM once_operation WHERE scope = ?) AS last_line)",
        {Blob{"forget"}, scope}));
    return log_operation(connection, scope, "forget", fmt::format("{}", horizon_ms),
                         "the horizon moved");
  });
}

Result<Forgotten> ServerStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                      std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  const std::int64_t before = ONCE_TRY(horizon_of(scope));
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before) ONCE_TRY(move_horizon(number, horizon_ms));
  ONCE_POINT(store_after_horizon);
  const std::int64_t horizon = std::max(horizon_ms, before);
  const Lease lease = ONCE_TRY(lend());
  Forgotten forgotten;
  for (const Old& old : {Old{"once_ledger", "", number, horizon},
                         Old{"once_claim", "AND state IN (3, 4)", number, horizon}}) {
    const std::size_t left = rows_max - forgotten.rows;
    const auto gone = static_cast<std::size_t>(ONCE_TRY(delete_old(*lease, old, left)));
    forgotten.rows += gone;
    forgotten.more = gone == left;
    if (forgotten.more) break;
  }
  return forgotten;
}

}  // namespace once
