// SPDX-License-Identifier: Apache-2.0
#include "store/sql/server_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/failpoint.h"
#include "model/ledger.h"
#include "model/random.h"

namespace once {

Result<std::string> without_own_parameters(std::string_view url, ServerStoreOptions& options) {
  constexpr std::string_view name = "connections=";
  constexpr std::size_t most = 10'000;
  const std::size_t question = std::min(url.find('?'), url.size());
  std::string made(url.substr(0, question));
  std::string_view rest = url.substr(question);
  char before = '?';
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(one.size());
    if (!one.starts_with(name)) {
      made += before;
      made += one;
      before = '&';
      continue;
    }
    const std::string_view value = one.substr(name.size());
    const auto read =
        std::from_chars(value.data(), value.data() + value.size(), options.connections_max);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size() ||
        options.connections_max == 0 || options.connections_max > most)
      return fail(
          Remedy::stop, "url",
          fmt::format("connections is \"{}\", but must be a number from 1 to {}", value, most));
  }
  return made;
}

StoreTraits ServerStore::traits() const {
  return {where_, StoreTraits::Durability::power, true, false, true, identity_};
}

Status ServerStore::read_identity(SqlConnection& connection) {
  constexpr std::string_view select = "SELECT identity FROM once_identity";
  auto answer = ONCE_TRY(connection.ask(select));
  if (answer->rows() == 0) {
    const std::string made = random_identity();
    ONCE_TRY(connection.send(
        fmt::format("{} once_identity VALUES (1, ?) {}", words_.insert, words_.skip_present),
        {Blob{made}}));
    answer = ONCE_TRY(connection.ask(select));
  }
  if (answer->rows() != 1)
    return fail(Remedy::stop, "corrupt",
                where_ + ": the table once_identity must have exactly one row");
  identity_ = answer->bytes(0, 0);
  return {};
}

Result<ServerStore::Lease> ServerStore::lend() {
  {
    std::unique_lock lock(mutex_);
    if (!given_back_.wait_for(lock, std::chrono::milliseconds(options_.lend_ms_max),
                              [this] { return lent_ < options_.connections_max; }))
      return fail(
          Remedy::retry, "exhausted",
          fmt::format("{}: all {} connections are in use, and none was given back within {} "
                      "ms; use fewer lanes, or raise connections=N in the URL of the store",
                      where_, options_.connections_max, options_.lend_ms_max));
    ++lent_;
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(connection));
    }
  }
  auto connection = connect();
  if (connection) return Lease(*this, std::move(*connection));
  const std::lock_guard lock(mutex_);
  --lent_;
  given_back_.notify_one();
  return fail(std::move(connection).error());
}

void ServerStore::give_back(std::unique_ptr<SqlConnection> connection) {
  const bool usable = connection->reset();
  if (!usable) forget_what_is_known();
  const std::lock_guard lock(mutex_);
  if (usable && idle_.size() < options_.idle_connections_max)
    idle_.push_back(std::move(connection));
  --lent_;
  given_back_.notify_one();
}

// One broken connection usually means that the server went away: the idle ones are of no use.
void ServerStore::forget_what_is_known() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
  names_.clear();
}

Result<std::int64_t> ServerStore::number_of(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
  }
  // Somebody may hold a transaction that must not be asked: it may be rolled back.
  const std::int64_t number =
      ONCE_TRY(aside([&](SqlConnection& connection) -> Result<std::int64_t> {
        ONCE_TRY(connection.send(
            fmt::format("{} once_name (name) VALUES (?) {}", words_.insert, words_.skip_present),
            {Blob{name}}));
        const auto found =
            ONCE_TRY(connection.ask("SELECT number FROM once_name WHERE name = ?", {Blob{name}}));
        if (found->rows() != 1)
          return fail(Remedy::retry, "conflict", where_ + ": a name was taken away; try again");
        return found->number(0, 0);
      }));
  const std::lock_guard lock(mutex_);
  names_.insert_or_assign(std::string(name), number);
  return number;
}

// A fence that is not ours may be that of another database, in which names have other numbers.
Error ServerStore::fenced(std::string_view scope, std::string_view partition, const Position& from,
                          const Position& actual) {
  forget_what_is_known();
  return fenced_error(scope, partition, from, actual);
}

Result<std::int64_t> ServerStore::now_ms(SqlConnection& connection) {
  const auto answer = ONCE_TRY(connection.ask(fmt::format("SELECT {}", words_.now_ms)));
  return answer->number(0, 0) + skew_ms();
}

Result<std::unique_ptr<Transaction>> ServerStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  Lease lease = ONCE_TRY(lend());
  ONCE_TRY(begin_on(*lease));
  return make_transaction(number, scope, std::move(lease));
}

Position position_in(const SqlAnswer& answer, int row, int column) {
  return {
      answer.number(row, column),
      static_cast<std::uint64_t>(answer.number(row, column + 1)),
      {answer.number(row, column + 2), static_cast<std::uint64_t>(answer.number(row, column + 3))}};
}

Result<ServerStore::Locked> ServerStore::lock_position(SqlConnection& connection,
                                                       std::int64_t scope, std::int64_t partition) {
  const std::string select = fmt::format(
      "SELECT {}, source_identity, {} FROM once_position "
      "WHERE scope = ? AND source_partition = ? FOR UPDATE",
      position_columns, words_.now_ms);
  auto answer = ONCE_TRY(connection.ask(select, {scope, partition}));
  if (answer->rows() == 0) {
    ONCE_TRY(
        connection.send(fmt::format("{} once_position (scope, source_partition, at_offset, fence) "
                                    "VALUES (?, ?, -1, 0) {}",
                                    words_.insert, words_.skip_present),
                        {scope, partition}));
    answer = ONCE_TRY(connection.ask(select, {scope, partition}));
  }
  const Position position = position_in(*answer, 0);
  return Locked{position, std::string(answer->bytes(0, 4)),
                next_fence(position.fence, answer->number(0, 5) + skew_ms())};
}

Result<Position> ServerStore::take(std::string_view scope, std::string_view partition,
                                   std::string_view source_identity) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  ONCE_TRY(check_source_identity(source_identity));
  const std::int64_t scope_number = ONCE_TRY(number_of(scope));
  const std::int64_t partition_number = ONCE_TRY(number_of(partition));
  return write([&](SqlConnection& connection) -> Result<Position> {
    Locked taken = ONCE_TRY(lock_position(connection, scope_number, partition_number));
    if (is_other_source(taken.source_identity, source_identity))
      return fail(other_source_error(scope, partition, taken.position.offset, taken.source_identity,
                                     source_identity));
    taken.position.fence = taken.next_fence;
    ONCE_TRY(
        connection.send("UPDATE once_position SET fence = ?, source_identity = ? "
                        "WHERE scope = ? AND source_partition = ?",
                        {taken.position.fence,
                         Blob{source_identity.empty() ? taken.source_identity : source_identity},
                         scope_number, partition_number}));
    ONCE_TRY(log_operation(connection, scope_number, "take", partition,
                           fmt::format("fence {}", taken.position.fence)));
    ONCE_TRY(trim_operations(connection, scope_number));
    return taken.position;
  });
}

// Waits for whoever is moving it: a commit whose answer was lost may still be on its way, and who
// looks it up must not be answered before it has happened or cannot happen any more.
Result<Position> ServerStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const Lease lease = ONCE_TRY(lend());
  return read_position(*lease, scope, partition, words_.share);
}

Result<Position> ServerStore::read_position(SqlConnection& connection, std::string_view scope,
                                            std::string_view partition, std::string_view how) {
  const auto answer = ONCE_TRY(connection.ask(
      fmt::format("SELECT {} FROM once_position "
                  "WHERE scope = (SELECT number FROM once_name WHERE name = ?) "
                  "AND source_partition = (SELECT number FROM once_name WHERE name = ?) {}",
                  position_columns, how),
      {Blob{scope}, Blob{partition}}));
  return answer->rows() == 0 ? Position{} : position_in(*answer, 0);
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

// The select is nested because MySQL deletes from no table that the statement reads itself.
Status ServerStore::trim_operations(SqlConnection& connection, std::int64_t scope) {
  return connection.send(
      "DELETE FROM once_operation WHERE scope = ? AND number <= (SELECT number FROM "
      "(SELECT number FROM once_operation WHERE scope = ? ORDER BY number DESC LIMIT 1 OFFSET ?) "
      "AS oldest)",
      {scope, scope, operations_max});
}

// --- forgetting. The horizon is moved by somebody who is alone with it: whoever admits at that
// moment shares a lock until its commit, and whoever admits later sees the new horizon. Then rows
// go, some per call.

Status ServerStore::move_horizon(std::int64_t scope, std::int64_t horizon_ms) {
  return write([&](SqlConnection& connection) -> Status {
    ONCE_TRY(lock_horizon(connection, scope));
    const auto moves = ONCE_TRY(
        connection.ask("SELECT 1 FROM once_horizon WHERE scope = ? AND horizon_ms < ? AND held = 0 "
                       "FOR UPDATE",
                       {scope, horizon_ms}));
    if (moves->rows() == 0) return {};
    ONCE_TRY(connection.send("UPDATE once_horizon SET horizon_ms = ? WHERE scope = ?",
                             {horizon_ms, scope}));
    // The horizon moves all the time: one line says how far, until something else happens.
    ONCE_TRY(connection.send(
        "DELETE FROM once_operation WHERE action = ? AND number = (SELECT newest FROM "
        "(SELECT max(number) AS newest FROM once_operation WHERE scope = ?) AS last_line)",
        {Blob{"forget"}, scope}));
    ONCE_TRY(log_operation(connection, scope, "forget", fmt::format("{}", horizon_ms),
                           "the horizon moved"));
    return trim_operations(connection, scope);
  });
}

Result<Forgotten> ServerStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                      std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  const StoredHorizon before = ONCE_TRY(stored_horizon(scope));
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before.ms && !before.held) ONCE_TRY(move_horizon(number, horizon_ms));
  ONCE_POINT(store_after_horizon);
  return write([&](SqlConnection& connection) -> Result<Forgotten> {
    // A person may have set it back, and while rows go nobody does.
    const auto stored = ONCE_TRY(connection.ask(
        fmt::format("SELECT horizon_ms FROM once_horizon WHERE scope = ? {}", words_.share),
        {number}));
    const std::int64_t horizon = stored->rows() == 0 ? 0 : stored->number(0, 0);
    Forgotten forgotten;
    // What waits (outcome 5) is not settled: its id is not forgotten.
    for (const Old& old : {Old{"once_ledger", "AND outcome <> 5", number, horizon},
                           Old{"once_claim", "AND state IN (3, 4)", number, horizon}}) {
      const std::size_t left = rows_max - forgotten.rows;
      const auto gone = static_cast<std::size_t>(ONCE_TRY(delete_old(connection, old, left)));
      forgotten.rows += gone;
      forgotten.more = gone == left;
      if (forgotten.more) break;
    }
    return forgotten;
  });
}

}  // namespace once
