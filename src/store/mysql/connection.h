// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/mysql/address.h"
#include "store/sql/connection.h"

namespace once {

class MysqlAnswer final : public SqlAnswer {
 public:
  // Without a result (a write), how many rows it touched.
  MysqlAnswer(MYSQL_RES* result, std::int64_t touched);

  int rows() const override { return static_cast<int>(rows_.size()); }
  std::int64_t touched() const override { return touched_; }
  bool is_null(int row, int column) const override;
  std::string bytes(int row, int column) const override;
  Row row(int row) const override;

 private:
  struct Cells {
    MYSQL_ROW values;
    std::vector<unsigned long> lengths;
  };
  struct Free {
    void operator()(MYSQL_RES* result) const { mysql_free_result(result); }
  };

  std::unique_ptr<MYSQL_RES, Free> result_;
  std::vector<Cells> rows_;
  std::int64_t touched_;
};

// One connection. Queued statements are sent as one packet, and answered one by one.
class MysqlConnection final : public SqlConnection {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MysqlConnection>> open(const MysqlAddress& address);
  ~MysqlConnection() override;

  using SqlConnection::send;
  Status send(std::string_view statement, std::span<const Value> values, Then then,
              SqlStage stage) override;
  Status sync() override;
  bool reset() override;

 private:
  struct Pending {
    std::string statement;  // as it was written, for errors
    Then then;
    SqlStage stage = SqlStage::statement;
  };

  explicit MysqlConnection(std::string where) : where_(std::move(where)) {}
  Status configure();
  // Sends what is queued and takes the answers.
  void flush();
  // False: what is behind it was not run.
  bool receive(const Pending& pending, bool failed);
  void remember(const Status& done);
  Error error(SqlStage stage, std::string_view statement);

  MYSQL handle_{};
  bool initialised_ = false;
  const std::string where_;
  std::string packet_;
  std::deque<Pending> pending_;
  Status first_;  // the first error since the last sync
  bool broken_ = false;
};

}  // namespace once
