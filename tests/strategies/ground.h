// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/store.h>
#include <once/strategies.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/store_fixture.h"
#include "strategy/guarded_row.h"

namespace once::testing {

// A store on which contenders meet. To join the suite, a store says this much.
class Ground {
 public:
  virtual ~Ground() = default;
  // For one contender: the same data for all, a store of its own wherever that is possible.
  virtual std::shared_ptr<Store> open() = 0;
  // Whether contenders are processes; else they are threads.
  virtual bool shared_by_processes() const = 0;
  // As StoreUnderTest::effect_table; empty where there are no tables.
  virtual std::string effect_table() const { return {}; }
  virtual void define(const std::string& statement) {
    StoreUnderTest::define_in(*open(), statement);
  }
};

struct GroundFactory {
  std::string name;
  std::function<std::unique_ptr<Ground>()> make;
};

inline void PrintTo(const GroundFactory& factory, std::ostream* out) { *out << factory.name; }

// Plain enough for every dialect.
inline const std::vector<std::string>& suite_tables() {
  static const std::vector<std::string> tables{
      "CREATE TABLE flow (transfer VARCHAR(64) NOT NULL, account VARCHAR(64) NOT NULL, "
      "amount BIGINT, PRIMARY KEY (transfer, account))",
      "CREATE TABLE account (name VARCHAR(64) PRIMARY KEY, balance BIGINT NOT NULL, "
      "version BIGINT NOT NULL)",
      "CREATE TABLE ride (id VARCHAR(64) PRIMARY KEY, state VARCHAR(32) NOT NULL, "
      "driver VARCHAR(64))",
      "CREATE TABLE ride_hold (id VARCHAR(64) NOT NULL, state VARCHAR(32) NOT NULL, "
      "PRIMARY KEY (id, state))",
      "CREATE TABLE stock (item VARCHAR(64) PRIMARY KEY, amount BIGINT NOT NULL, "
      "fence BIGINT NOT NULL)",
      "CREATE TABLE token (digest VARCHAR(32) PRIMARY KEY, issued_ms BIGINT NOT NULL, "
      "expires_ms BIGINT NOT NULL, used_ms BIGINT NOT NULL)"};
  return tables;
}

// Runs `work` in a transaction until it is committed. What the store could not do now is done
// again, as the pipeline does.
template <class Work>
auto committed(Store& store, Work&& work) -> std::invoke_result_t<Work, Transaction&> {
  constexpr int attempts_max = 100'000;
  for (int attempt = 1;; ++attempt) {
    const auto once_only = [&]() -> std::invoke_result_t<Work, Transaction&> {
      auto transaction = ONCE_TRY(store.begin("shop"));
      auto answer = ONCE_TRY(work(*transaction));
      ONCE_TRY(transaction->commit());
      return answer;
    };
    auto answer = once_only();
    const bool again = !answer && answer.error().remedy == Remedy::retry;
    if (!again || attempt == attempts_max) return answer;
  }
}

// A strategy, and an effect if it said `winning`: together or not at all.
template <class Answer>
Result<Answer> with_effect(Transaction& transaction, Result<Answer> answer, Answer winning,
                           const std::string& id) {
  if (answer && *answer == winning) ONCE_TRY(add_effect(transaction, id));
  return answer;
}

// The columns of a row as committed; empty: it is not there.
inline Row row_of(Store& store, std::string_view table, Columns key,
                  std::initializer_list<std::string_view> columns) {
  auto transaction = store.begin("look").value();
  const auto row = guarded_row(*transaction, table, key).value();
  const std::vector<std::string_view> names(columns);
  return row->read(names, Freshness::snapshot).value().value_or(Row{});
}

inline std::int64_t number_of(const Field& field) { return std::get<std::int64_t>(field); }

}  // namespace once::testing
