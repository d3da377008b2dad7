// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/mysql.h"

#include <fmt/format.h>
#include <once/open.h>

#include "store/mysql/render.h"
#include "store/mysql/schema.h"
#include "store/mysql/transaction.h"

namespace once {
namespace {

constexpr SqlWords mysql_words{
    .dialect = SqlDialect::mysql,
    .now_ms = mysql_now_ms,
    .insert = "INSERT IGNORE INTO",
    .skip_present = "",
    .lock = "FOR UPDATE",
    .share = "LOCK IN SHARE MODE",
    .least = "least",
    .send_order = "send_order",
    .nulls_last = "",
};

}  // namespace

MysqlStore::MysqlStore(MysqlAddress address, ServerStoreOptions options)
    : ServerStore(address.where(), mysql_words, std::move(options)), address_(std::move(address)) {}

Result<std::unique_ptr<MysqlStore>> MysqlStore::open(const std::string& url,
                                                     ServerStoreOptions options) {
  MysqlAddress address =
      ONCE_TRY(MysqlAddress::parse(ONCE_TRY(without_own_parameters(url, options))));
  std::unique_ptr<MysqlStore> store(new MysqlStore(std::move(address), std::move(options)));
  const auto connection = ONCE_TRY(store->connect());
  ONCE_TRY(store->check_settings(*connection));
  if (!store->makes_tables()) return store;
  ONCE_TRY(migrate_mysql(*connection, store->where()));
  ONCE_TRY(store->read_identity(*connection));
  ONCE_TRY(store->check_own_tables(*connection));
  return store;
}

Result<std::unique_ptr<SqlConnection>> MysqlStore::connect() {
  auto connection = ONCE_TRY(MysqlConnection::open(address_));
  return connection;
}

Status MysqlStore::begin_on(SqlConnection& connection) {
  return guards_transactions_ ? static_cast<MysqlConnection&>(connection).begin_guarded()
                              : connection.begin();
}

Status MysqlStore::check_settings(SqlConnection& connection) const {
  const auto settings = ONCE_TRY(connection.ask(
      "SELECT @@innodb_flush_log_at_trx_commit, @@innodb_doublewrite, @@log_bin, @@sync_binlog, "
      "@@read_only"));
  const auto unsafe = [&](std::string_view setting, const std::string& is, std::string_view harm,
                          std::string_view instead) {
    return fail(
        Remedy::stop, "unsafe",
        fmt::format("{}: {} is {}, and {}; set it to {}", where(), setting, is, harm, instead));
  };
  if (settings->number(0, 0) != 1)
    return unsafe("innodb_flush_log_at_trx_commit", settings->bytes(0, 0),
                  "a crash loses commits that were acknowledged", "1");
  const std::string doublewrite = settings->bytes(0, 1);
  if (doublewrite == "0" || doublewrite == "OFF")
    return unsafe("innodb_doublewrite", doublewrite, "a power cut can tear pages", "ON");
  if (settings->number(0, 2) == 1 && settings->number(0, 3) != 1)
    return unsafe("sync_binlog", settings->bytes(0, 3),
                  "replicas and recovery may disagree with what was acknowledged", "1");
  if (settings->number(0, 4) == 1)
    return fail(Remedy::stop, "denied",
                where() + ": the server is read-only; connect to the primary");
  return {};
}

std::unique_ptr<Transaction> MysqlStore::make_transaction(std::int64_t scope_number,
                                                          std::string_view scope, Lease lease) {
  return std::make_unique<MysqlTransaction>(*this, scope_number, scope, std::move(lease),
                                            guards_transactions_);
}

// Those who admit share a lock on this row until they commit (transaction.cc).
Status MysqlStore::lock_horizon(SqlSession& session, std::int64_t scope) {
  ONCE_TRY(
      session.send("INSERT IGNORE INTO once_horizon (scope, horizon_ms) VALUES (?, 0)", {scope}));
  return session.send("SELECT horizon_ms FROM once_horizon WHERE scope = ? FOR UPDATE", {scope});
}

// Left alone, the server would rather sort the whole scope than walk the index by birth.
Result<std::int64_t> MysqlStore::delete_old(SqlSession& session, const Old& old,
                                            std::size_t rows_max) {
  const auto answer = ONCE_TRY(session.ask(
      fmt::format("DELETE old FROM (SELECT id FROM {0} FORCE INDEX ({0}_born) "
                  "WHERE scope = ? AND born_ms < ? {1} ORDER BY born_ms LIMIT ?) AS oldest "
                  "STRAIGHT_JOIN {0} AS old FORCE INDEX (PRIMARY) ON old.id = oldest.id "
                  "WHERE scope = ? AND born_ms < ? {1}",
                  old.table, old.condition),
      {old.scope, old.horizon_ms, rows_max, old.scope, old.horizon_ms}));
  return answer->touched();
}

Result<std::unique_ptr<Store>> open_mysql_store(std::string_view url) {
  return MysqlStore::open(std::string(url), {});
}

}  // namespace once
