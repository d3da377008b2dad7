// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>

#include "base/failpoint.h"
#include "model/ledger.h"
#include "store/postgres/schema.h"
#include "store/postgres/text.h"
#include "store/postgres/transaction.h"

namespace once {
namespace {

constexpr int server_version_min = 120000;

// Without what stands between "//" and "@": that may be a secret.
std::string without_secret(const std::string& url) {
  const std::size_t begin = url.find("://");
  const std::size_t at = url.rfind('@');
  if (begin == std::string::npos) return "postgresql";  // key=value pairs may hold a password
  std::string shown = url.substr(0, begin + 3);
  shown += at == std::string::npos ? url.substr(begin + 3) : url.substr(at + 1);
  return shown.substr(0, shown.find('?'));
}

}  // namespace

PostgresStore::PostgresStore(std::string url, PostgresOptions options)
    : url_(std::move(url)), where_(without_secret(url_)), options_(std::move(options)) {}

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(const std::string& url,
                                                           PostgresOptions options) {
  std::unique_ptr<PostgresStore> store(new PostgresStore(url, std::move(options)));
  const Lease lease = ONCE_TRY(store->lend());
  ONCE_TRY(store->check_settings(*lease));
  ONCE_TRY(migrate_postgres(*lease, store->where_));
  return store;
}

Status PostgresStore::check_settings(PgConnection& connection) const {
  const Answer settings = ONCE_TRY(
      connection.ask("SELECT current_setting('server_version_num'), current_setting('fsync'), "
                     "current_setting('synchronous_commit'), pg_is_in_recovery(), "
                     "current_setting('full_page_writes')",
                     {}));
  const auto unsafe = [&](std::string_view setting, std::string_view is, std::string_view harm,
                          std::string_view instead) {
    return fail(
        Remedy::stop, "unsafe",
        fmt::format("{}: {} is {}, and {}; set it to {}", where_, setting, is, harm, instead));
  };
  if (settings.number(0, 0) < server_version_min)
    return fail(Remedy::stop, "config",
                fmt::format("{}: the server is version {}; 12 or newer is needed", where_,
                            settings.text(0, 0)));
  if (settings.text(0, 1) != "on")
    return unsafe("fsync", settings.text(0, 1), "a power cut loses commits or the database", "on");
  if (settings.text(0, 4) != "on")
    return unsafe("full_page_writes", settings.text(0, 4), "a power cut can tear pages", "on");
  if (settings.text(0, 2) == "off")
    return unsafe("synchronous_commit", "off", "a crash loses commits that were acknowledged",
                  "on, for this database or this user");
  if (settings.text(0, 3) == "t")
    return fail(Remedy::stop, "denied",
                where_ + ": this is a standby, which cannot be written; connect to the primary");
  return {};
}

StoreTraits PostgresStore::traits() const {
  return {where_, StoreTraits::Durability::power, true, false, true};
}

Result<PostgresStore::Lease> PostgresStore::lend() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(connection));
    }
  }
  auto connection = ONCE_TRY(PgConnection::open(url_, where_));
  return Lease(*this, std::move(connection));
}

void PostgresStore::give_back(std::unique_ptr<PgConnection> connection) {
  const bool usable = connection->reset();
  const std::lock_guard lock(mutex_);
  // One broken connection usually means that the server went away: the idle ones are of no use.
  if (!usable) idle_.clear();
  if (usable && idle_.size() < options_.idle_connections_max)
    idle_.push_back(std::move(connection));
}

Result<std::int64_t> PostgresStore::number_of(std::string_view name) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = names_.find(name); found != names_.end()) return found->second;
  }
  const Lease lease = ONCE_TRY(lend());
  ONCE_TRY(lease->send("INSERT INTO once_name (name) VALUES ($1) ON CONFLICT DO NOTHING", {name}));
  const Answer found = ONCE_TRY(lease->ask("SELECT number FROM once_name WHERE name = $1", {name}));
  if (found.rows() != 1)
    return fail(Remedy::retry, "conflict", where_ + ": a name was taken away; try again");
  const std::lock_guard lock(mutex_);
  return names_.emplace(name, found.number(0, 0)).first->second;
}

Result<std::unique_ptr<Transaction>> PostgresStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::int64_t number = ONCE_TRY(number_of(scope));
  Lease lease = ONCE_TRY(lend());
  auto transaction = std::make_unique<PostgresTransaction>(*this, number, scope, std::move(lease));
  ONCE_TRY(transaction->open());
  return transaction;
}

Result<Position> PostgresStore::take(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const std::int64_t scope_number = ONCE_TRY(number_of(scope));
  const std::int64_t partition_number = ONCE_TRY(number_of(partition));
  return write([&](PgConnection& connection) -> Result<Position> {
    const Answer answer = ONCE_TRY(connection.ask(
        "INSERT INTO once_position VALUES ($1, $2, -1, 1) ON CONFLICT (scope, partition) "
        "DO UPDATE SET fence = once_position.fence + 1 RETURNING at_offset, fence",
        {scope_number, partition_number}));
    const Position position{answer.number(0, 0), static_cast<std::uint64_t>(answer.number(0, 1))};
    ONCE_TRY(log_operation(connection, scope_number, "take", partition,
                           fmt::format("fence {}", position.fence)));
    return position;
  });
}

Result<Position> PostgresStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const Lease lease = ONCE_TRY(lend());
  const Answer answer =
      ONCE_TRY(lease->ask("SELECT at_offset, fence FROM once_position "
                          "WHERE scope = (SELECT number FROM once_name WHERE name = $1) "
                          "AND partition = (SELECT number FROM once_name WHERE name = $2)",
                          {scope, partition}));
  if (answer.rows() == 0) return Position{};
  return Position{answer.number(0, 0), static_cast<std::uint64_t>(answer.number(0, 1))};
}

Status PostgresStore::log_operation(PgConnection& connection, std::int64_t scope,
                                    std::string_view action, std::string_view subject,
                                    std::string_view reason) {
  return connection.send(
      "INSERT INTO once_operation (scope, at_ms, action, subject, reason) "
      "VALUES ($1, " ONCE_PG_NOW_MS ", $2, $3, $4)",
      {scope, action, Blob{subject}, Blob{reason}});
}

Result<std::unique_ptr<Store>> open_postgresql_store(std::string_view url) {
  return PostgresStore::open(std::string(url), {});
}

}  // namespace once
