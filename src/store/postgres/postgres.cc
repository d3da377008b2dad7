// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres.h"

#include <fmt/format.h>
#include <once/open.h>

#include "base/url.h"
#include "store/postgres/schema.h"
#include "store/postgres/statement_text.h"
#include "store/postgres/transaction.h"

namespace once {
namespace {

constexpr int server_version_min = 120000;

constexpr SqlWords postgres_words{
    .dialect = SqlDialect::postgresql,
    .now_ms = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    .insert = "INSERT INTO",
    .skip_present = "ON CONFLICT DO NOTHING",
    .lock = "FOR UPDATE",
    .share = "FOR SHARE",
    .least = "least",
    .send_order = "target_sequence",
    .nulls_last = "NULLS LAST",
};

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

PostgresStore::PostgresStore(std::string url, ServerStoreOptions options)
    : ServerStore(without_secret(url), postgres_words, std::move(options)), url_(std::move(url)) {}

Result<std::unique_ptr<PostgresStore>> PostgresStore::open(const std::string& url,
                                                           ServerStoreOptions options) {
  // libpq repeats a whole URL when it cannot read it; what it is given here can be read.
  if (scheme_bytes(url) != 0) ONCE_TRY(parse_url(url));
  std::string native = ONCE_TRY(without_own_parameters(url, options));
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(native), std::move(options)));
  const auto connection = ONCE_TRY(store->connect_here());
  ONCE_TRY(store->check_settings(*connection));
  if (!store->makes_tables()) return store;
  ONCE_TRY(migrate_postgres(*connection, store->where()));
  ONCE_TRY(store->read_identity(*connection));
  ONCE_TRY(store->check_own_tables(*connection));
  store->schema_ = ONCE_TRY(store->schema_in(*connection));
  return store;
}

Result<std::unique_ptr<PgConnection>> PostgresStore::connect_here() {
  return PgConnection::open(url_, where());
}

Result<std::string> PostgresStore::schema_in(PgConnection& connection) const {
  const auto answer = ONCE_TRY(
      connection.ask("SELECT n.nspname FROM pg_class AS c JOIN pg_namespace AS n "
                     "ON n.oid = c.relnamespace WHERE c.oid = to_regclass('once_ledger')"));
  return answer->rows() == 1 ? answer->bytes(0, 0) : std::string();
}

// The search path may have become another one since the store was opened.
Result<std::unique_ptr<SqlConnection>> PostgresStore::connect() {
  auto connection = ONCE_TRY(connect_here());
  if (const std::string found = ONCE_TRY(schema_in(*connection)); found != schema_)
    return fail(
        Remedy::stop, "config",
        fmt::format("{}: the tables of Once were in the schema \"{}\", and a new connection "
                    "finds {}; has the search_path of the user or the database changed?",
                    where(), schema_,
                    found.empty() ? "none" : fmt::format("those in \"{}\"", found)));
  return connection;
}

Status PostgresStore::check_settings(PgConnection& connection) const {
  const auto settings = ONCE_TRY(
      connection.ask("SELECT current_setting('server_version_num'), current_setting('fsync'), "
                     "current_setting('synchronous_commit'), pg_is_in_recovery(), "
                     "current_setting('full_page_writes')"));
  const auto unsafe = [&](std::string_view setting, std::string_view is, std::string_view harm,
                          std::string_view instead) {
    return fail(
        Remedy::stop, "unsafe",
        fmt::format("{}: {} is {}, and {}; set it to {}", where(), setting, is, harm, instead));
  };
  const auto is_on = [&](int column) { return settings->bytes(0, column) == "on"; };
  if (settings->number(0, 0) < server_version_min)
    return fail(Remedy::stop, "config",
                fmt::format("{}: the server is version {}; 12 or newer is needed", where(),
                            settings->bytes(0, 0)));
  if (!is_on(1)) return unsafe("fsync", "off", "a power cut loses commits or the database", "on");
  if (!is_on(4)) return unsafe("full_page_writes", "off", "a power cut can tear pages", "on");
  if (settings->bytes(0, 2) == "off")
    return unsafe("synchronous_commit", "off", "a crash loses commits that were acknowledged",
                  "on, for this database or this user");
  if (settings->bytes(0, 3) == "t")
    return fail(Remedy::stop, "denied",
                where() + ": this is a standby, which cannot be written; connect to the primary");
  return {};
}

std::unique_ptr<Transaction> PostgresStore::make_transaction(std::int64_t scope_number,
                                                             std::string_view scope, Lease lease) {
  return std::make_unique<PostgresTransaction>(*this, scope_number, scope, std::move(lease),
                                               guess_);
}

// Those who admit share this lock until they commit (transaction.cc).
Status PostgresStore::lock_horizon(SqlSession& session, std::int64_t scope) {
  ONCE_TRY(session.send("SELECT pg_advisory_xact_lock(57223, ?)", {scope}));
  return session.send(
      "INSERT INTO once_horizon (scope, horizon_ms) VALUES (?, 0) ON CONFLICT DO NOTHING", {scope});
}

// A table may be partitioned: rows are found again by their ids, not by their places.
Result<std::int64_t> PostgresStore::delete_old(SqlSession& session, const Old& old,
                                               std::size_t rows_max) {
  const auto answer = ONCE_TRY(session.ask(
      fmt::format("DELETE FROM {0} WHERE scope = ? AND born_ms < ? {1} AND id = ANY (ARRAY("
                  "SELECT id FROM {0} WHERE scope = ? AND born_ms < ? {1} "
                  "ORDER BY scope, born_ms LIMIT ?))",
                  old.table, old.condition),
      {old.scope, old.horizon_ms, old.scope, old.horizon_ms, rows_max}));
  return answer->touched();
}

Result<std::unique_ptr<Store>> open_postgresql_store(std::string_view url) {
  return PostgresStore::open(std::string(url), {});
}

}  // namespace once
