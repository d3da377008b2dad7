// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>
#include <once/store.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace once {

// Where an error came from: the same code means another thing for a commit.
enum class SqlStage : std::uint8_t { open, begin, statement, commit };

// A number as a server prints it.
template <class T>
T number_in(std::string_view text) {
  T number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// A statement as errors show it.
inline std::string_view shortened(std::string_view statement) { return statement.substr(0, 200); }

// What one statement answered.
class SqlAnswer {
 public:
  virtual ~SqlAnswer() = default;
  virtual int rows() const = 0;
  // How many rows it wrote, or read.
  virtual std::int64_t touched() const = 0;
  virtual bool is_null(int row, int column) const = 0;
  // A column of bytes as it is; any other as the server prints it.
  virtual std::string bytes(int row, int column) const = 0;
  // As handlers get it.
  virtual Row row(int row) const = 0;

  virtual std::int64_t number(int row, int column) const;
};

// The answer to one of many writes that were run as one.
class SqlCount final : public SqlAnswer {
 public:
  explicit SqlCount(std::int64_t touched) : touched_(touched) {}
  int rows() const override { return 0; }
  std::int64_t touched() const override { return touched_; }
  bool is_null(int, int) const override { return true; }
  std::string bytes(int, int) const override { return {}; }
  Row row(int) const override { return {}; }

 private:
  const std::int64_t touched_;
};

// Runs the statements of a part of a store. They are queued and sent together where there is a
// server, and only `sync` waits. Used by one thread at a time; the owner sees to that.
class SqlSession {
 public:
  SqlSession() = default;
  SqlSession(const SqlSession&) = delete;
  SqlSession& operator=(const SqlSession&) = delete;
  virtual ~SqlSession() = default;

  // Called with the answer or the error, when it comes; what it fails with is what `sync` fails
  // with. Not called for statements behind one that failed: they were not run.
  using Then = std::function<Status(Result<std::unique_ptr<SqlAnswer>>)>;

  // Queues a statement with `?` for its values.
  [[nodiscard]] virtual Status send(std::string_view statement, std::span<const Value> values,
                                    Then then, SqlStage stage) = 0;
  // Waits for all answers. The first error is answered; the statements behind it were not run.
  [[nodiscard]] virtual Status sync() = 0;

  [[nodiscard]] Status send(std::string_view statement, std::initializer_list<Value> values = {},
                            Then then = {}, SqlStage stage = SqlStage::statement) {
    return send(statement, std::span(values.begin(), values.size()), std::move(then), stage);
  }
  // Sends and waits; answers what this statement answered.
  [[nodiscard]] Result<std::unique_ptr<SqlAnswer>> ask(std::string_view statement,
                                                       std::span<const Value> values);
  [[nodiscard]] Result<std::unique_ptr<SqlAnswer>> ask(std::string_view statement,
                                                       std::initializer_list<Value> values = {}) {
    return ask(statement, std::span(values.begin(), values.size()));
  }
};

// One connection to a server.
class SqlConnection : public SqlSession {
 public:
  // Queues a write of which nobody asks how many rows it touched: `then` is told of an error only,
  // and many of them may be run as one.
  [[nodiscard]] virtual Status send_uncounted(std::string_view statement,
                                              std::span<const Value> values, Then then) {
    return send(statement, values, std::move(then), SqlStage::statement);
  }
  // Queue the two ends of a transaction that reads what others have committed meanwhile. A
  // transaction that ends in another way is an error with the tag "transaction_lost".
  [[nodiscard]] virtual Status begin() = 0;
  [[nodiscard]] virtual Status commit() = 0;
  // Ends what is open and restores the session, so that the connection can be used again; false: it
  // is of no use.
  [[nodiscard]] virtual bool reset() = 0;
  // Lets the server prepare a statement, where it can, and does not run it. Nothing may be queued.
  [[nodiscard]] virtual Result<StatementShape> describe(std::string_view) {
    return StatementShape{.unchecked = "this server cannot be asked"};
  }
  // A handler may change settings of the session, or leave something in it.
  void expect_session_change() { session_changed_ = true; }

 protected:
  static Error transaction_lost(std::string_view where, std::string_view statement);

  bool session_changed_ = false;
};

}  // namespace once
