// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/sql/connection.h"
#include "store/sqlite/connection.h"

namespace once {

// Runs statements of the parts of a store (store/sql) on a connection to an SQLite file. There is
// no network, so that each runs at once, and `sync` has nothing to wait for.
class SqliteSession final : public SqlSession {
 public:
  explicit SqliteSession(Connection& connection) : connection_(connection) {}

  using SqlSession::send;
  Status send(std::string_view statement, std::span<const Value> values, Then then,
              SqlStage stage) override;
  Status sync() override { return {}; }

 private:
  Result<std::unique_ptr<SqlAnswer>> run(std::string_view statement, std::span<const Value> values);

  Connection& connection_;
};

}  // namespace once
