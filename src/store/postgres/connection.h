// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <libpq-fe.h>
#include <once/sql.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/postgres/error.h"
#include "store/postgres/parameters.h"

namespace once {

// What one statement answered.
class Answer {
 public:
  explicit Answer(PGresult* result) : result_(result) {}

  int rows() const { return PQntuples(result_.get()); }
  // How many rows it wrote, or read.
  std::int64_t touched() const;
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::int64_t number(int row, int column) const;
  std::string_view text(int row, int column) const;
  std::string bytes(int row, int column) const;  // of a bytea
  Row row(int row) const;
  // The word of the server: "COMMIT", "ROLLBACK", ...
  std::string_view command() const { return PQcmdStatus(result_.get()); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

// One connection, always in pipeline mode: statements are queued and sent together, and only `sync`
// waits. Used by one thread at a time; the owner sees to that.
class PgConnection {
 public:
  // `url` may hold a secret; `where` is what people may see.
  [[nodiscard]] static Result<std::unique_ptr<PgConnection>> open(const std::string& url,
                                                                  std::string where);
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;
  ~PgConnection();

  // Called with the answer or the error, when it comes; what it fails with is what `sync` fails
  // with. Not called for statements behind one that failed: they were not run.
  using Then = std::function<Status(Result<Answer>)>;

  // Queues a statement, which is prepared once per connection.
  [[nodiscard]] Status send(std::string_view statement, const Parameters& parameters,
                            Then then = {}, PostgresStage stage = PostgresStage::statement);
  // Waits for all answers. The first error is answered; the statements behind it were not run.
  [[nodiscard]] Status sync();
  // Both, for a single statement.
  [[nodiscard]] Result<Answer> ask(std::string_view statement, const Parameters& parameters);
  // Several statements without parameters, in a transaction of their own, for schemas.
  [[nodiscard]] Status script(const std::string& statements);

  bool is_broken() const { return broken_; }
  // Ends what is open, so that the connection can be used again; false: it is of no use.
  bool reset();
  std::size_t queued() const { return pending_.size(); }

 private:
  struct Pending {
    std::string statement;
    Then then;
    PostgresStage stage = PostgresStage::statement;
    bool is_preparation = false;
  };

  PgConnection(PGconn* handle, std::string where) : handle_(handle), where_(std::move(where)) {}
  Status prepare(std::string_view statement, std::string& name);
  Status receive(const Pending& pending);
  void receive_sync();
  Error error(std::string_view state, PostgresStage stage, std::string_view statement,
              const char* native) const;
  Error broken(PostgresStage stage, std::string_view statement);

  PGconn* handle_;
  const std::string where_;
  std::deque<Pending> pending_;
  std::unordered_map<std::string, std::string> prepared_;  // statement to name
  std::uint64_t names_ = 0;
  bool broken_ = false;
};

}  // namespace once
