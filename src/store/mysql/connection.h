// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mysql.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/sql_update.h"
#include "store/mysql/address.h"
#include "store/mysql/bulk.h"
#include "store/mysql/render.h"
#include "store/sql/connection.h"
#include "store/sql/waves.h"

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

// One connection. Queued statements are sent as one packet, and answered one by one. Many writes in
// a row that only differ in their values are sent as one where the server knows how: as one
// statement with many rows of values, or, if somebody wants to know how many rows each touched, as
// an update over a table of the values or a block that loops over them (many_writes.cc).
class MysqlConnection final : public SqlConnection {
 public:
  [[nodiscard]] static Result<std::unique_ptr<MysqlConnection>> open(const MysqlAddress& address);
  ~MysqlConnection() override;

  using SqlConnection::send;
  Status send(std::string_view statement, std::span<const Value> values, Then then,
              SqlStage stage) override;
  Status send_uncounted(std::string_view statement, std::span<const Value> values,
                        Then then) override;
  Status begin() override;
  Status commit() override;
  Status sync() override;
  bool reset() override;
  Result<StatementShape> describe(std::string_view statement) override;
  // Begins a transaction that only we can end: the server refuses whatever would commit it, also
  // inside of procedures. (It is one of XA, which costs a statement more.)
  [[nodiscard]] Status begin_guarded();
  bool is_guarded() const { return !guard_.empty(); }

  bool knows_bulk() const { return knows_bulk_; }
  // Runs a write for many rows, after all that is queued; answers how many rows it touched. The
  // values come row by row, those of a parameter all of one type or null.
  [[nodiscard]] Result<std::int64_t> run_bulk(const std::string& statement,
                                              std::span<const Value> values, std::size_t rows);

 private:
  using Pieces = std::shared_ptr<const StatementPieces>;
  struct Pending {
    std::string statement;  // as it was written
    Pieces pieces;
    KeptValues values;
    Then then;
    SqlStage stage = SqlStage::statement;
    bool is_counted = true;
  };

  // What the server says of an update; without a key it is not run as one.
  struct SetUpdate {
    std::chrono::steady_clock::time_point learned_at = {};
    std::optional<KeyedUpdate> update = {};
    std::optional<std::size_t> key = {};  // the parameter that finds one row
  };
  // Equal writes, as their values.
  struct EqualRows {
    explicit EqualRows(std::span<const Pending> pending);
    const std::string& statement;
    RowTypes types;
    std::vector<std::span<const Value>> rows;
  };
  using Counts = std::vector<std::int64_t>;

  explicit MysqlConnection(std::string where) : where_(std::move(where)) {}
  // Settings of the session, whatever the server's defaults are (session.cc).
  Status configure();
  // Notices that the transaction is gone, or has begun or ended as it should.
  void watch(SqlStage stage, std::string_view statement);
  bool end_transaction();
  Status check_fits(std::string_view statement, std::size_t bytes) const;
  Result<Pieces> pieces_of(std::string_view statement);
  Status queue(std::string_view statement, std::span<const Value> values, Then then, SqlStage stage,
               bool is_counted);
  // Sends what is queued and takes the answers.
  void flush();
  // How many of these, from the first on, can be sent as one.
  std::size_t equal_run(std::span<const Pending> pending) const;
  void flush_packet(std::span<const Pending> pending);
  void flush_equal(std::span<const Pending> pending);
  // Both answer what went wrong; then nobody knows which of them it was.
  std::optional<Error> run_bulk(BulkStatement& bulk, std::span<const Pending> pending);
  std::optional<Error> run_counted(std::span<const Pending> pending);
  // How many rows each touched. No counts: they cannot be told so, and nothing was done.
  Result<Counts> run_together(const EqualRows& equal, const std::string& prepared);
  Result<bool> run_wave(const KeyedUpdate& update, const EqualRows& equal,
                        std::span<const std::size_t> wave);
  Result<Counts> run_loop(const EqualRows& equal, const std::string& prepared);
  const SetUpdate& set_update(const std::string& statement);
  std::optional<std::size_t> unique_key(const KeyedUpdate& update);
  // Null: it failed.
  std::unique_ptr<MysqlAnswer> answer_to(std::string_view statement, std::span<const Value> values);
  BulkStatement* bulk_statement(const std::string& statement);
  bool command(std::string_view statement);
  // The text that a command answers; unset: it failed.
  std::optional<std::string> text_of_command(std::string_view statement);
  // False: what is behind it was not run.
  bool receive(const Pending& pending, bool failed);
  // All that one statement answers. Null: it failed.
  std::unique_ptr<MysqlAnswer> take_answer(const StatementPieces& pieces);
  // Answers that nobody wants are in the way of the next statement. False: the connection broke.
  bool discard_answers();
  void tell(const Pending& pending, Error error);
  void remember(const Status& done);
  bool goes_on(unsigned code);
  Error error(SqlStage stage, std::string_view statement);
  Error error(SqlStage stage, std::string_view statement, const MysqlFailure& failure);

  MYSQL handle_{};
  bool initialised_ = false;
  bool knows_bulk_ = false;
  bool knows_loops_ = false;
  const std::string where_;
  std::vector<Pending> pending_;
  std::size_t pending_bytes_ = 0;
  std::size_t packet_bytes_max_ = std::numeric_limits<std::size_t>::max();  // the server's limit
  std::unordered_map<std::string, Pieces> pieces_;
  std::unordered_map<std::string, std::unique_ptr<BulkStatement>> bulk_;
  std::unordered_map<std::string, SetUpdate> sets_;  // by the statement as it was written
  Status first_;                                     // the first error since the last sync
  bool in_transaction_ = false;
  std::string guard_;  // the name of a guarded transaction
  bool broken_ = false;
};

}  // namespace once
