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
  return {where(), StoreTraits::Durability::power, true, false, true, identity_};
}

Status ServerStore::read_identity(SqlConnection& connection) {
  constexpr std::string_view select = "SELECT identity FROM once_identity";
  auto answer = ONCE_TRY(connection.ask(select));
  if (answer->rows() == 0) {
    const std::string made = random_identity();
    ONCE_TRY(connection.send(
        fmt::format("{} once_identity VALUES (1, ?) {}", words().insert, words().skip_present),
        {Blob{made}}));
    answer = ONCE_TRY(connection.ask(select));
  }
  if (answer->rows() != 1)
    return fail(Remedy::stop, "corrupt",
                where() + ": the table once_identity must have exactly one row");
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
                      where(), options_.connections_max, options_.lend_ms_max));
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
            fmt::format("{} once_name (name) VALUES (?) {}", words().insert, words().skip_present),
            {Blob{name}}));
        const auto found =
            ONCE_TRY(connection.ask("SELECT number FROM once_name WHERE name = ?", {Blob{name}}));
        if (found->rows() != 1)
          return fail(Remedy::retry, "conflict", where() + ": a name was taken away; try again");
        return found->number(0, 0);
      }));
  const std::lock_guard lock(mutex_);
  names_.insert_or_assign(std::string(name), number);
  return number;
}

Status ServerStore::run_reading(const AnyWork& work) {
  const Lease lease = ONCE_TRY(lend());
  return work(*lease);
}

Status ServerStore::run_writing(const AnyWork& work) {
  constexpr int tries_max = 20;
  for (int attempt = 1;; ++attempt) {
    Status done = write_once(work);
    if (done || done.error().tag != "conflict" || attempt == tries_max) return done;
  }
}

Status ServerStore::write_once(const AnyWork& work) {
  const Lease lease = ONCE_TRY(lend());
  ONCE_TRY(lease->begin());
  ONCE_TRY(work(*lease));
  ONCE_TRY(lease->commit());
  return lease->sync();
}

Result<std::unique_ptr<Transaction>> ServerStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  Lease lease = ONCE_TRY(lend());
  ONCE_TRY(begin_on(*lease));
  return make_transaction(number, scope, std::move(lease));
}

Result<Forgotten> ServerStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                      std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const SqlHorizons::Stored before = ONCE_TRY(parts_.horizons.stored(scope));
  ONCE_POINT(store_before_forget);
  if (horizon_ms > before.ms && !before.held) ONCE_TRY(parts_.horizons.move(scope, horizon_ms));
  ONCE_POINT(store_after_horizon);
  return write([&](SqlSession& session) -> Result<Forgotten> {
    const std::int64_t number = ONCE_TRY(number_of(scope));
    // A person may have set it back, and while rows go nobody does.
    const auto stored = ONCE_TRY(session.ask(
        fmt::format("SELECT horizon_ms FROM once_horizon WHERE scope = ? {}", words().share),
        {number}));
    const std::int64_t horizon = stored->rows() == 0 ? 0 : stored->number(0, 0);
    Forgotten forgotten;
    // What waits (outcome 5) is not settled: its id is not forgotten.
    for (const Old& old : {Old{"once_ledger", "AND outcome <> 5", number, horizon},
                           Old{"once_claim", "AND state IN (3, 4)", number, horizon}}) {
      const std::size_t left = rows_max - forgotten.rows;
      const auto gone = static_cast<std::size_t>(ONCE_TRY(delete_old(session, old, left)));
      forgotten.rows += gone;
      forgotten.more = gone == left;
      if (forgotten.more) break;
    }
    return forgotten;
  });
}

}  // namespace once
