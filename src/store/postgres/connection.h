// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/postgres/each_function.h"
#include "store/postgres/equal_writes.h"
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

// One connection, always in pipeline mode. Many writes in a row that only differ in their values
// are run by one call of a function, if the server lets us make it (many_writes.cc).
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
    Then then = {};
    SqlStage stage = SqlStage::statement;
    bool is_preparation = false;
    // A call: the function, and who is told of which of its rows.
    std::shared_ptr<const EachFunction> function = {};
    std::vector<Then> rows = {};
  };

  // What is known of a write that came many times in a row.
  struct Loop {
    // A function is gone with the transaction that made it, unless that commits.
    enum class State : std::uint8_t { unknown, unmade, made, lasting, refused };
    std::string name = {};
    State state = State::unknown;
    std::vector<ParameterType> types = {};
    std::shared_ptr<const EachFunction> function = {};
  };

  PgConnection(PGconn* handle, std::string where) : handle_(handle), where_(std::move(where)) {}
  Result<const std::string*> numbered_text(std::string_view statement, std::size_t values);
  Status queue(Pending pending, const Parameters& parameters);
  Status prepare(const std::string& statement, std::string& name);
  Status receive(const Pending& pending);
  void receive_sync();
  // Waits for the answers to all that was sent.
  Status take_answers();
  void remember(const Status& done);

  // Many equal writes (many_writes.cc).
  Status keep(std::span<const Value> values, Then then);
  // Sends what was kept. Its failure is what `sync` fails with; until then nothing more is sent.
  void flush();
  Status send_kept(EqualWrites& writes);
  Status send_one_by_one(EqualWrites& writes);
  Status make_and_call(Loop& loop, EqualWrites& writes);
  // The counts of the first call; nothing if there cannot be one.
  Result<std::optional<std::vector<std::int64_t>>> try_call(Loop& loop, const EqualWrites& writes);
  Status learn(Loop& loop, const EqualWrites& writes);
  Result<bool> may_make_functions();
  Result<std::vector<ParameterType>> types_in(const EqualWrites& writes);
  Status receive_rows(const Pending& pending, const PGresult* result);
  void end_transaction(bool is_committed);

  Error error(std::string_view state, SqlStage stage, std::string_view statement,
              const char* native) const;
  Error broken(SqlStage stage, std::string_view statement);

  static constexpr std::size_t prepared_max = 500;

  PGconn* handle_;
  const std::string where_;
  std::deque<Pending> pending_;
  Status first_;                                             // the first error since the last sync
  std::unordered_map<std::string, StatementText> numbered_;  // by the statement with `?`
  std::unordered_map<std::string, std::string> prepared_;    // statement with $1 to its name
  std::uint64_t names_ = 0;
  EqualWrites writes_;
  std::unordered_map<std::string, Loop> loops_;  // by the statement with `?`
  std::optional<bool> may_make_functions_;
  bool in_transaction_ = false;
  bool broken_ = false;
};

}  // namespace once
