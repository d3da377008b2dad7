// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/postgres/connection.h"
#include "store/postgres/transaction.h"
#include "store/sql/server_store.h"

namespace once {

// A store in a PostgreSQL database, over libpq in pipeline mode. Everything committed survives a
// power cut of the server, if its settings say so, which is read back when the store is opened.
class PostgresStore final : public ServerStore {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PostgresStore>> open(const std::string& url,
                                                                   ServerStoreOptions options);

 private:
  PostgresStore(std::string url, ServerStoreOptions options);
  Result<std::unique_ptr<PgConnection>> connect_here();
  Status check_settings(PgConnection& connection) const;
  // Refuses tables of ours that somebody has made UNLOGGED.
  Status check_own_tables(PgConnection& connection);
  // Refuses a connection that would find the tables of somebody else, or none.
  Result<std::string> schema_in(PgConnection& connection) const;

  Result<std::unique_ptr<SqlConnection>> connect() override;
  Result<std::string> untransactional(SqlConnection& connection,
                                      const std::vector<SqlName>& names) override;
  std::unique_ptr<Transaction> make_transaction(std::int64_t scope_number, std::string_view scope,
                                                Lease lease) override;
  Status lock_horizon(SqlSession& session, std::int64_t scope) override;
  Result<std::int64_t> delete_old(SqlSession& session, const Old& old,
                                  std::size_t rows_max) override;

  const std::string url_;
  std::string schema_;  // that has our tables
  Guess guess_;
};

}  // namespace once
