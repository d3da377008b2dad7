// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/claims.h>
#include <once/clock.h>
#include <once/key_value.h>
#include <once/outbox.h>
#include <once/records.h>
#include <once/sql.h>
#include <once/store.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace once::testing {

// A store as the suite needs it: it can die and come back, and lose the answer to a commit.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Store& store() = 0;
  // The process dies and comes back: what was committed is there, what was open is gone.
  virtual void reopen() = 0;
  // Another process opens the same place; empty: only one can. Not to be used after `reopen`.
  virtual std::unique_ptr<Store> open_another() { return {}; }
  // The next commit fails with the remedy `recheck`; whether it is kept is the adapter's choice,
  // and `kept` is what the suite would like.
  virtual void lose_next_commit(bool kept) = 0;
  // Somebody sets the clock of the machine.
  virtual void jump_clock(std::int64_t ms) = 0;
  // Whether a transaction waits until the one before it has ended.
  virtual bool has_one_writer() const { return false; }
  // A table `effect` with a growing `number` and an `id` of bytes, in the dialect of the store.
  virtual std::string effect_table() const { return {}; }
  // A table `kinds` with columns for 64-bit numbers, doubles, text, bytes and text.
  virtual std::string kinds_table() const { return {}; }
  // Changes the schema, as the owner of the database does.
  virtual void define(const std::string& statement) { define_in(store(), statement); }

  static void define_in(Store& store, const std::string& statement) {
    auto transaction = store.begin("setup").value();
    const Status done = transaction->sql()->execute(statement);
    ASSERT_TRUE(done) << done.error().text;
    const Status committed = transaction->commit();
    ASSERT_TRUE(committed) << committed.error().text;
  }
};

// The machine's clock, which somebody can set.
class JumpingClock final : public Clock {
 public:
  std::int64_t now_ms() override { return system_clock().now_ms() + jump_ms_; }
  std::int64_t ticks_ns() override { return system_clock().ticks_ns(); }
  void jump(std::int64_t ms) { jump_ms_ += ms; }

 private:
  std::atomic<std::int64_t> jump_ms_{0};
};

struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

inline void PrintTo(const StoreFactory& factory, std::ostream* out) { *out << factory.name; }

constexpr std::int64_t day_ms = 86'400'000;
constexpr std::int64_t birth_ms = 1'700'000'000'000;

inline Fingerprint print(int content) {
  Fingerprint fingerprint{1, {}};
  fingerprint.digest[0] = static_cast<std::uint8_t>(content);
  fingerprint.digest[15] = static_cast<std::uint8_t>(content >> 8);
  return fingerprint;
}

inline Entry entry(std::string_view id, std::int64_t offset = 0, int content = 0,
                   std::int64_t born_ms = birth_ms) {
  return {id, print(content), born_ms, "p0", offset};
}

inline Delivery delivery(std::string_view id, std::int64_t offset = 0) {
  Delivery made;
  made.partition = "p0";
  made.offset = offset;
  made.id = id;
  made.body = "body";
  return made;
}

// Effects are counted where they must be: in the store, in the same transaction, one by one and in
// their order.
inline Status add_effect(Transaction& transaction, std::string_view id) {
  if (SqlTransaction* sql = transaction.sql())
    return sql->execute("INSERT INTO effect (id) VALUES (?)", {Blob{id}}, rows(1));
  KeyValueTransaction& values = *transaction.key_value();
  const std::string count_text = ONCE_TRY(values.get("effects")).value_or("0");
  const int number = std::stoi(count_text) + 1;
  ONCE_TRY(values.put("effects", std::to_string(number)));
  return values.put("effect " + std::to_string(number), id);
}

inline std::vector<std::string> effects_of(Store& store) {
  std::vector<std::string> ids;
  auto transaction = store.begin("look").value();
  if (SqlTransaction* sql = transaction->sql()) {
    const auto found = sql->query("SELECT id FROM effect ORDER BY number").value();
    for (const Row& row : found) ids.push_back(std::get<std::string>(row.at(0)));
    return ids;
  }
  KeyValueTransaction& values = *transaction->key_value();
  const int count = std::stoi(values.get("effects").value().value_or("0"));
  for (int number = 1; number <= count; ++number)
    ids.push_back(values.get("effect " + std::to_string(number)).value().value());
  return ids;
}

// What a transaction of a pipeline does: one batch, all or nothing.
class StoreSuite : public ::testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override {
    under_test_ = GetParam().make();
    if (store().traits().sql) define(under_test_->effect_table());
  }

  Store& store() { return under_test_->store(); }
  Records& records() { return *store().records(); }
  Outbox& outbox() { return *store().outbox(); }
  ClaimStore& claims() { return *store().claims(); }
  void reopen() { under_test_->reopen(); }
  void define(const std::string& statement) { under_test_->define(statement); }

  std::unique_ptr<Transaction> begin(std::string_view scope = "shop") {
    auto transaction = store().begin(scope);
    EXPECT_TRUE(transaction) << transaction.error().text;
    return std::move(transaction).value();
  }

  // Admits, gives the fresh ones an effect, commits.
  Result<std::vector<Verdict>> handle(std::span<const Entry> entries,
                                      std::string_view scope = "shop") {
    auto transaction = ONCE_TRY(store().begin(scope));
    auto verdicts = ONCE_TRY(transaction->admit(entries));
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (verdicts[i].kind == Verdict::Kind::fresh)
        ONCE_TRY(add_effect(*transaction, entries[i].id));
    ONCE_TRY(transaction->commit());
    return verdicts;
  }
  Verdict handle_one(const Entry& one, std::string_view scope = "shop") {
    auto verdicts = handle(std::span(&one, 1), scope);
    EXPECT_TRUE(verdicts) << verdicts.error().text;
    return verdicts ? verdicts->at(0) : Verdict{};
  }
  Verdict::Kind kind_of(const Entry& one, std::string_view scope = "shop") {
    return handle_one(one, scope).kind;
  }

  // Until there is nothing more to forget; answers how many rows went.
  std::size_t forget_all(std::int64_t horizon_ms, std::size_t rows_max = 10) {
    for (std::size_t rows = 0;;) {
      const auto forgotten = store().forget("shop", horizon_ms, rows_max);
      EXPECT_TRUE(forgotten) << forgotten.error().text;
      if (!forgotten) return rows;
      EXPECT_LE(forgotten->rows, rows_max);
      rows += forgotten->rows;
      if (!forgotten->more) return rows;
    }
  }

  std::vector<std::string> effects() { return effects_of(store()); }
  std::map<std::string, int> effect_counts() {
    std::map<std::string, int> counts;
    for (const std::string& id : effects()) ++counts[id];
    return counts;
  }

  std::unique_ptr<StoreUnderTest> under_test_;
};

using Kind = Verdict::Kind;

}  // namespace once::testing
