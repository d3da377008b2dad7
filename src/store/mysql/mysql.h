// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "store/mysql/address.h"
#include "store/mysql/connection.h"
#include "store/sql/server_store.h"

namespace once {

// A store in a MySQL or MariaDB database, over MariaDB's Connector/C. Everything committed survives
// a power cut of the server, if its settings say so, which is read back when the store is opened.
class MysqlStore final : public ServerStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MysqlStore>> open(const std::string& url,
                                                                ServerStoreOptions options);

 private:
  MysqlStore(MysqlAddress address, ServerStoreOptions options);
  Status check_settings(SqlConnection& connection) const;
  // Refuses tables of ours to which somebody has given an engine without transactions.
  Status check_own_tables(SqlConnection& connection) const;

  Result<std::unique_ptr<SqlConnection>> connect() override;
  Status begin_on(SqlConnection& connection) override;
  Result<std::string> untransactional(SqlConnection& connection,
                                      const std::vector<SqlName>& names) override;
  std::unique_ptr<Transaction> make_transaction(std::int64_t scope_number, std::string_view scope,
                                                Lease lease) override;
  Status lock_horizon(SqlSession& session, std::int64_t scope) override;
  Result<std::int64_t> delete_old(SqlSession& session, const Old& old,
                                  std::size_t rows_max) override;

  const MysqlAddress address_;
  // A handler calls procedures, which could commit.
  std::atomic<bool> guards_transactions_{false};
};

}  // namespace once
