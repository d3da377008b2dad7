// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/sql_update.h"
#include "store/postgres/equal_writes.h"
#include "store/postgres/parameters.h"
#include "store/postgres/set_update.h"
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

// One connection, always in pipeline mode. Many updates in a row that only differ in their values
// are run as one statement, where that comes to the same (many_writes.cc).
class PgConnection final : public SqlConnection {
 public:
  // `url` may hold a secret; `where` is what people may see.
  [[nodiscard]] static Result<std::unique_ptr<PgConnection>> open(const std::string& url,
                                                                  std::string where);
  ~PgConnection() override;

  using SqlConnection::send;
  Status send(std::string_view statement, std::span<const Value> values, Then then,
              SqlStage stage) override;
  Status begin() override;
  Status commit() override;
  Status sync() override;
  bool reset() override;
  Result<StatementShape> describe(std::string_view statement) override;

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
  };
  // A statement as it was written.
  struct Known {
    StatementText text;
    std::shared_ptr<const KeyedUpdate> update = {};  // if it is one
    bool may_change_tables = false;
  };
  // What the server says of an update: what it is run by, or no key if it is run one by one.
  struct SetUpdate {
    std::chrono::steady_clock::time_point learned_at = {};
    std::vector<ParameterType> types = {};
    std::vector<SetKey> keys = {};
    std::string text = {};
  };

  PgConnection(PGconn* handle, std::string where) : handle_(handle), where_(std::move(where)) {}
  // Settings of the session, whatever the defaults of server, database and user are (session.cc).
  Status configure();
  Status restore_session();
  static void note(void* self, const PGresult* notice);
  const Known& known(std::string_view statement);
  Status queue(Pending pending, const Parameters& parameters);
  // `then` is told if it fails.
  Status prepare(const std::string& statement, std::string& name, Then then = {});
  // Waits for what the server says of a statement that it has prepared under this name; an empty
  // name is that of the last one without a name.
  Result<std::unique_ptr<SqlAnswer>> ask_shape(const std::string& name, std::string_view statement);
  Status receive(const Pending& pending);
  void receive_sync();
  // Waits for the answers to all that was sent.
  Status take_answers();
  void remember(const Status& done);

  // Many equal updates (many_writes.cc).
  Status keep(std::span<const Value> values, Then then);
  // Sends what was kept. Its failure is what `sync` fails with; until then nothing more is sent.
  void flush();
  Status send_kept(EqualWrites& writes);
  Status send_one_by_one(EqualWrites& writes);
  Status send_together(SetUpdate& set, EqualWrites& writes, const Waves& waves);
  // How many rows each touched; unset: an error, after which `refused` says why, if it was one of
  // them that the server refused.
  std::optional<std::vector<std::int64_t>> run_waves(const SetUpdate& set,
                                                     const EqualWrites& writes, const Waves& waves,
                                                     Status& done, std::optional<Error>& refused);
  Status learn(SetUpdate& set, const EqualWrites& writes);
  Status ask_about(SetUpdate& set, const EqualWrites& writes);
  Result<std::vector<ParameterType>> types_in(const EqualWrites& writes);
  Result<std::vector<SetKey>> keys_of(const KeyedUpdate& update);

  Error error(std::string_view state, SqlStage stage, std::string_view statement,
              const char* native, bool goes_on = false) const;
  // What the server has answered instead of running a statement.
  Error refusal(const PGresult* result, SqlStage stage, std::string_view statement);
  Error broken(SqlStage stage, std::string_view statement);

  static constexpr std::size_t prepared_max = 500;

  PGconn* handle_;
  const std::string where_;
  std::deque<Pending> pending_;
  Status first_;                                           // the first error since the last sync
  std::unordered_map<std::string, Known> known_;           // by the statement with `?`
  std::unordered_map<std::string, std::string> prepared_;  // statement with $1 to its name
  std::uint64_t names_ = 0;
  EqualWrites writes_;
  std::unordered_map<std::string, SetUpdate> sets_;  // by the statement with `?`
  bool in_transaction_ = false;
  bool committed_nothing_ = false;  // the server was told to commit, and there was no transaction
  bool broken_ = false;
};

}  // namespace once
