// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_fixture.h"

namespace once::testing {

// What an SQL store does beyond StoreSuite. Writes may be queued, so a failure may come from a
// later call: `outcome_of` waits for the commit.
class SqlStoreSuite : public StoreSuite {
 protected:
  void SetUp() override {
    StoreSuite::SetUp();
    auto transaction = begin("setup");
    ASSERT_TRUE(transaction->sql()->execute(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER CHECK (balance >= 0))"));
    for (int id = 1; id <= 3; ++id)
      ASSERT_TRUE(transaction->sql()->execute("INSERT INTO account VALUES (?, 100)", {id}));
    ASSERT_TRUE(transaction->commit());
  }

  // Runs the writes and commits; answers the first failure.
  Status outcome_of(const std::function<Status(SqlTransaction&)>& writes) {
    auto transaction = begin();
    auto status = writes(*transaction->sql());
    auto committed = transaction->commit();
    if (!status) {
      EXPECT_FALSE(committed) << "a doomed transaction was committed";
      EXPECT_EQ(committed.error(), status.error());
      return status;
    }
    return committed;
  }

  std::vector<std::int64_t> balances() {
    auto transaction = begin();
    const Rows found = transaction->sql()->query("SELECT balance FROM account ORDER BY id").value();
    std::vector<std::int64_t> all;
    for (const Row& row : found) all.push_back(std::get<std::int64_t>(row.at(0)));
    return all;
  }
};

inline constexpr const char* add_sql = "UPDATE account SET balance = balance + ? WHERE id = ?";

TEST_P(SqlStoreSuite, writes_are_there_after_the_commit_and_seen_before_it) {
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  ASSERT_TRUE(sql.execute(add_sql, {5, 1}, rows(1)));
  const Rows seen = sql.query("SELECT balance FROM account WHERE id = ?", {1}).value();
  EXPECT_EQ(std::get<std::int64_t>(seen.at(0).at(0)), 105);
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  reopen();
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{105, 100, 100}));
}

TEST_P(SqlStoreSuite, values_of_every_kind_come_back_as_they_were) {
  const std::string bytes("\0\xff'\"", 4);
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  ASSERT_TRUE(sql.execute(under_test_->kinds_table()));
  ASSERT_TRUE(sql.execute("INSERT INTO kinds VALUES (?, ?, ?, ?, ?)",
                          {std::int64_t{-9'000'000'000}, 1.5, "text ä", Blob{bytes}, nullptr}));
  ASSERT_TRUE(sql.execute("INSERT INTO kinds VALUES (?, ?, ?, ?, ?)",
                          {true, 0.0, "", Blob{{}}, std::string_view()}));
  const Rows found = sql.query("SELECT * FROM kinds").value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Row{std::int64_t{-9'000'000'000}, 1.5, "text ä", bytes, nullptr}));
  EXPECT_EQ(found[1], (Row{std::int64_t{1}, 0.0, "", "", ""}));
}

TEST_P(SqlStoreSuite, an_unmet_expectation_names_its_message_and_what_to_settle) {
  const Status status = outcome_of([](SqlTransaction& sql) -> Status {
    sql.on_behalf_of(4);
    ONCE_TRY(sql.execute(add_sql, {1, 1}, rows(1)));
    sql.on_behalf_of(5);
    ONCE_TRY(sql.execute(add_sql, {1, 99}, rows(1, rejected("no such account"))));
    sql.on_behalf_of(6);
    return sql.execute(add_sql, {1, 2}, rows(1));
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().tag, "expect");
  ASSERT_TRUE(status.error().culprit);
  EXPECT_EQ(status.error().culprit->message, 5u);
  EXPECT_EQ(status.error().culprit->instead, rejected("no such account"));
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

TEST_P(SqlStoreSuite, a_batch_handler_names_the_message_itself) {
  const Status status = outcome_of([](SqlTransaction& sql) {
    sql.on_behalf_of(1);
    Expect expect = rows(3);
    expect.message = 8;
    return sql.execute("UPDATE account SET balance = 0 WHERE id < 3", {}, expect);
  });
  ASSERT_FALSE(status);
  ASSERT_TRUE(status.error().culprit);
  EXPECT_EQ(status.error().culprit->message, 8u);
  EXPECT_EQ(status.error().culprit->instead.kind, Outcome::Kind::parked);
}

TEST_P(SqlStoreSuite, expectations_count_the_rows_of_their_own_statement) {
  EXPECT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    ONCE_TRY(sql.execute("UPDATE account SET balance = balance", {}, rows(3)));
    ONCE_TRY(sql.execute("UPDATE account SET balance = 1 WHERE id = 99", {}, rows(0)));
    ONCE_TRY(sql.execute("UPDATE account SET balance = 1 WHERE id = 99"));
    ONCE_TRY(sql.execute("DELETE FROM account WHERE id > 1", {}, rows(2)));
    return sql.execute("INSERT INTO account SELECT id + 1, 0 FROM account", {}, rows(1));
  }));
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 0}));
}

TEST_P(SqlStoreSuite, a_refused_write_parks_its_message) {
  const std::vector<std::pair<const char*, std::int64_t>> writes{
      {"INSERT INTO account VALUES (1, ?)", 5},                         // UNIQUE
      {"UPDATE account SET balance = balance - ? WHERE id = 1", 1000},  // CHECK
  };
  for (const auto& write : writes) {
    const auto statement = write.first;
    const auto value = write.second;
    const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      sql.on_behalf_of(3);
      return sql.execute(statement, {value});
    });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().tag, "constraint") << statement;
    ASSERT_TRUE(status.error().culprit) << statement;
    EXPECT_EQ(status.error().culprit->message, 3u);
    EXPECT_EQ(status.error().culprit->instead.kind, Outcome::Kind::parked);
    EXPECT_FALSE(status.error().culprit->instead.detail.empty());
  }
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

// Stores may run many writes that only differ in their values as one.
TEST_P(SqlStoreSuite, of_many_equal_writes_the_one_that_is_refused_is_named) {
  for (const std::size_t culprit : {0u, 57u, 99u}) {
    const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
      for (std::size_t i = 0; i < 100; ++i) {
        sql.on_behalf_of(i);
        ONCE_TRY(
            sql.execute("INSERT INTO account VALUES (?, ?)", {1000 + i, i == culprit ? -1 : 1}));
      }
      return {};
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().remedy, Remedy::park) << status.error().text;
    ASSERT_TRUE(status.error().culprit);
    EXPECT_EQ(status.error().culprit->message, culprit);
  }
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

TEST_P(SqlStoreSuite, many_equal_writes_take_effect_one_after_the_other) {
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 90; ++i) {
      ONCE_TRY(sql.execute(add_sql, {1, 1 + i % 3}));
      if (i == 40) ONCE_TRY(sql.execute("UPDATE account SET balance = balance * 2"));
    }
    for (int i = 0; i < 40; ++i)  // nulls among them, which have no type
      ONCE_TRY(i % 3 == 0 ? sql.execute("INSERT INTO account VALUES (?, ?)", {100 + i, nullptr})
                          : sql.execute("INSERT INTO account VALUES (?, ?)", {100 + i, i}));
    return {};
  }));
  auto transaction = begin();
  const Rows found =
      transaction->sql()->query("SELECT id, balance FROM account ORDER BY id").value();
  ASSERT_EQ(found.size(), 43u);
  // Forty-one of the ninety were doubled: fourteen, fourteen and thirteen of the three accounts.
  EXPECT_EQ(found[0], (Row{std::int64_t{1}, std::int64_t{2 * 114 + 16}}));
  EXPECT_EQ(found[1], (Row{std::int64_t{2}, std::int64_t{2 * 114 + 16}}));
  EXPECT_EQ(found[2], (Row{std::int64_t{3}, std::int64_t{2 * 113 + 17}}));
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(found[static_cast<std::size_t>(3 + i)],
              (Row{std::int64_t{100 + i}, i % 3 == 0 ? Field(nullptr) : Field(std::int64_t{i})}));
}

TEST_P(SqlStoreSuite, a_doomed_transaction_does_nothing_more) {
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
  auto status = sql.execute(add_sql, {1, 99}, rows(1));
  if (status) status = Status(tl::unexpected(sql.query("SELECT 1").error()));
  const Error first = status.error();
  EXPECT_EQ(sql.execute(add_sql, {1, 1}).error(), first);
  EXPECT_EQ(sql.query("SELECT 1").error(), first);
  EXPECT_EQ(transaction->admit(std::vector{entry("b")}).error(), first);
  EXPECT_EQ(transaction->advance("p0", {}, 1).error(), first);
  EXPECT_EQ(transaction->enqueue("next", {}).error(), first);
  EXPECT_EQ(transaction->commit().error(), first);
  transaction.reset();
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

TEST_P(SqlStoreSuite, a_wrong_statement_stops_and_commits_nothing) {
  for (const char* statement :
       {"UPDATE nowhere SET a = 1", "this is no SQL", "", "UPDATE account SET balance = ?",
        "SELECT 1; DELETE FROM account"}) {
    const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      return sql.execute(statement);
    });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().remedy, Remedy::stop) << statement;
    EXPECT_EQ(status.error().tag, "sql") << statement;
  }
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

// A handler that commits, or writes the books, would split what must become true together.
TEST_P(SqlStoreSuite, H19_a_handler_can_neither_end_the_transaction_nor_write_the_books) {
  for (const char* statement :
       {"COMMIT", "ROLLBACK", "BEGIN", "SAVEPOINT x", "DELETE FROM once_ledger",
        "UPDATE once_position SET fence = 0", "DROP TABLE once_ledger",
        "INSERT INTO once_horizon VALUES (1, 1)"}) {
    const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      return sql.execute(statement);
    });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().tag, "sql") << statement;
  }
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
}

}  // namespace once::testing
