// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "store/sql/connection.h"
#include "store/sql/words.h"

namespace once {

// The tables of a store in an SQL database, as the parts of the store reach them (parts.h). The
// store knows where connections come from and what a transaction costs. Thread-safe.
class SqlBooks {
 public:
  // `where` is what people may see of the URL. `clock_skew_ms` is added to the clock of the store,
  // by which leases are judged; it is for tests, and may be empty.
  SqlBooks(std::string where, const SqlWords& words, std::function<std::int64_t()> clock_skew_ms)
      : where_(std::move(where)), words_(words), clock_skew_ms_(std::move(clock_skew_ms)) {}
  SqlBooks(const SqlBooks&) = delete;
  SqlBooks& operator=(const SqlBooks&) = delete;
  virtual ~SqlBooks() = default;

  // Run `work(SqlSession&)` outside of any transaction, or in one of its own that is committed
  // unless `work` fails; both answer what it answers. A rival that was in the way (a deadlock, say)
  // is no reason to give up: then `write` runs it again.
  template <class Work>
  auto read(const Work& work) -> std::invoke_result_t<Work, SqlSession&> {
    return answer_of(work, [this](const AnyWork& any) { return run_reading(any); });
  }
  template <class Work>
  auto write(const Work& work) -> std::invoke_result_t<Work, SqlSession&> {
    return answer_of(work, [this](const AnyWork& any) { return run_writing(any); });
  }

  // Reads, outside of any transaction.
  [[nodiscard]] Result<std::unique_ptr<SqlAnswer>> ask(std::string_view statement,
                                                       std::initializer_list<Value> values = {});

  // The number under which the tables have a name; a new name gets one. Inside `write`.
  [[nodiscard]] virtual Result<std::int64_t> number_of(SqlSession& session,
                                                       std::string_view name) = 0;
  // Waits until nobody admits with the old horizon of a scope, in the transaction that moves it;
  // then there is a row of it.
  [[nodiscard]] virtual Status lock_horizon(SqlSession& session, std::int64_t scope) = 0;

  const std::string& where() const { return where_; }
  const SqlWords& words() const { return words_; }
  std::int64_t skew_ms() const { return clock_skew_ms_ ? clock_skew_ms_() : 0; }
  [[nodiscard]] Result<std::int64_t> now_ms(SqlSession& session) const;

  [[nodiscard]] Status log_operation(SqlSession& session, std::int64_t scope,
                                     std::string_view action, std::string_view subject,
                                     std::string_view reason) const;
  [[nodiscard]] static Status trim_operations(SqlSession& session, std::int64_t scope);

  // The error of who has lost a position.
  Error fenced(std::string_view scope, std::string_view partition, const Position& from,
               const Position& actual);

 protected:
  using AnyWork = std::function<Status(SqlSession&)>;

 private:
  [[nodiscard]] virtual Status run_reading(const AnyWork& work) = 0;
  [[nodiscard]] virtual Status run_writing(const AnyWork& work) = 0;
  // What comes next may be another database, in which names have other numbers.
  virtual void forget_numbers() {}

  template <class Work, class Run>
  static auto answer_of(const Work& work, const Run& run)
      -> std::invoke_result_t<Work, SqlSession&> {
    std::optional<std::invoke_result_t<Work, SqlSession&>> answer;
    Status done = run([&](SqlSession& session) -> Status {
      answer.emplace(work(session));
      if (!*answer) return fail(answer->error());
      return {};
    });
    if (!done) return fail(std::move(done).error());
    return std::move(*answer);
  }

  const std::string where_;
  const SqlWords& words_;
  const std::function<std::int64_t()> clock_skew_ms_;
};

}  // namespace once
