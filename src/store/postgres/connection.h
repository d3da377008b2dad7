// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/postgres/parameters.h"
#include "store/postgres/statement_text.h"
#include "store/sql/connection.h"

namespace once {

class PgAnswer final : public SqlAnswer {
 public:
  explicit PgAnswer(PGresult* result) : result_(result) {}

  int rows() const override { return PQntuples(result_.get()); }
  std::int64_t touched() const override;
  bool is_null(int row, int column) const override {
    return PQgetisnull(result_.get(), row, column) != 0;
  }
  std::string bytes(int row, int column) const override;
  Row row(int row) const override;

  std::string_view text(int row, int column) const;
  PGresult* native() const { return result_.get(); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// One connection, always in pipeline mode.
class PgConnection final : public SqlConnection {
 public:
  // `url` may hold a secret; `where` is what people may see.
  [[nodiscard]] static Result<std::unique_ptr<PgConnection>> open(const std::string& url,
                                                                  std::string where);
  ~PgConnection() override;

  using SqlConnection::send;
  Status send(std::string_view statement, std::span<const Value> values, Then then,
              SqlStage stage) override;
  Status sync() override;
  bool reset() override;

  // A statement with $1, $2, ..., for parameters that are no values, such as arrays.
  [[nodiscard]] Status send_native(std::string_view statement, const Parameters& parameters,
                                   Then then, SqlStage stage = SqlStage::statement);
  // Several statements without parameters, for schemas.
  [[nodiscard]] Status script(const std::string& statements);

 private:
  struct Pending {
    std::string statement;
    Then then;
    SqlStage stage = SqlStage::statement;
    bool is_preparation = false;
  };

  PgConnection(PGconn* handle, std::string where) : handle_(handle), where_(std::move(where)) {}
  Status prepare(const std::string& statement, std::string& name);
  Status receive(const Pending& pending);
  void receive_sync();
  Error error(std::string_view state, SqlStage stage, std::string_view statement,
              const char* native) const;
  Error broken(SqlStage stage, std::string_view statement);

  PGconn* handle_;
  const std::string where_;
  std::deque<Pending> pending_;
  std::unordered_map<std::string, StatementText> numbered_;  // by the statement with `?`
  std::unordered_map<std::string, std::string> prepared_;    // statement with $1 to its name
  std::uint64_t names_ = 0;
  bool broken_ = false;
};

}  // namespace once
