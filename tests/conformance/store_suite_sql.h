// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "conformance/store_fixture.h"

namespace once::testing {

// What an SQL store does beyond StoreSuite. Writes may be queued, so a failure may come from a
// later call: `outcome_of` waits for the commit.
class SqlStoreSuite : public StoreSuite {
 protected:
  void SetUp() override {
    StoreSuite::SetUp();
    define("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER CHECK (balance >= 0))");
    auto transaction = begin("setup");
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

  // What a pipeline does with a batch: whoever spoils it is left out, and the others go again.
  // Answers who was left out, in the order in which they were found.
  using Work = std::function<Status(SqlTransaction&, std::size_t)>;
  std::vector<std::size_t> left_out_of(std::size_t count, const Work& work) {
    std::vector<std::size_t> left_out;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
        for (std::size_t i = 0; i < count; ++i) {
          if (std::find(left_out.begin(), left_out.end(), i) != left_out.end()) continue;
          sql.on_behalf_of(i);
          ONCE_TRY(work(sql, i));
        }
        return {};
      });
      if (status) return left_out;
      EXPECT_EQ(status.error().remedy, Remedy::park) << status.error().text;
      EXPECT_TRUE(status.error().culprit) << status.error().text;
      if (!status.error().culprit) break;
      left_out.push_back(status.error().culprit->message);
    }
    ADD_FAILURE() << "the batch was never well";
    return left_out;
  }

  // The accounts from 1000 on, which tests of many writes make.
  std::map<std::int64_t, std::int64_t> many_balances() {
    auto transaction = begin();
    const Rows found = transaction->sql()
                           ->query("SELECT id, balance FROM account WHERE id >= 1000 ORDER BY id")
                           .value();
    std::map<std::int64_t, std::int64_t> all;
    for (const Row& row : found)
      all.emplace(std::get<std::int64_t>(row.at(0)), std::get<std::int64_t>(row.at(1)));
    return all;
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
  define(under_test_->kinds_table());
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
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

inline constexpr const char* insert_sql = "INSERT INTO account VALUES (?, ?)";
inline constexpr std::size_t many = 1000;

TEST_P(SqlStoreSuite, of_a_thousand_equal_writes_the_one_that_misses_its_row_is_left_out) {
  ASSERT_TRUE(left_out_of(many, [](SqlTransaction& sql, std::size_t i) {
                return sql.execute(insert_sql, {1000 + i, i}, rows(1));
              }).empty());
  EXPECT_EQ(left_out_of(many,
                        [](SqlTransaction& sql, std::size_t i) {
                          return sql.execute(add_sql, {i + 1, i == 517 ? 99'999 : 1000 + i},
                                             rows(1, rejected("no such account")));
                        }),
            std::vector<std::size_t>{517});
  const auto found = many_balances();
  ASSERT_EQ(found.size(), many);
  for (std::size_t i = 0; i < many; ++i)
    EXPECT_EQ(found.at(static_cast<std::int64_t>(1000 + i)),
              static_cast<std::int64_t>(i == 517 ? i : 2 * i + 1))
        << i;
}

TEST_P(SqlStoreSuite, of_a_thousand_equal_writes_those_that_are_refused_are_left_out_in_order) {
  const auto work = [](SqlTransaction& sql, std::size_t i) {
    switch (i) {
      case 401: return sql.execute(insert_sql, {1000 + i, -1});     // CHECK
      case 402: return sql.execute(insert_sql, {1000 + i - 1, 5});  // UNIQUE, if 401 were there
      case 623: return sql.execute(insert_sql, {1622, 5});          // UNIQUE
      case 999: return sql.execute(insert_sql, {"no number", 5});   // of another type
      default: return sql.execute(insert_sql, {1000 + i, i});
    }
  };
  EXPECT_EQ(left_out_of(many, work), (std::vector<std::size_t>{401, 623, 999}));
  std::map<std::int64_t, std::int64_t> expected;
  for (std::int64_t i = 0; i < 999; ++i)
    if (i != 401 && i != 623) expected[i == 402 ? 1401 : 1000 + i] = i == 402 ? 5 : i;
  EXPECT_EQ(many_balances(), expected);
}

// The later failure may only be there because of what the earlier message did.
TEST_P(SqlStoreSuite, of_many_equal_writes_the_first_that_spoils_the_batch_is_named_first) {
  const auto work = [](SqlTransaction& sql, std::size_t i) {
    // The fourth touches two rows, and leaves both too little for those behind it.
    return sql.execute("UPDATE account SET balance = balance - ? WHERE id = ? OR id = ?",
                       {i == 3 ? 95 : 1, i % 3 + 1, i == 3 ? 2 : 0}, rows(1));
  };
  EXPECT_EQ(left_out_of(60, work), std::vector<std::size_t>{3});
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{81, 80, 80}));
}

TEST_P(SqlStoreSuite, values_of_every_kind_are_the_same_in_many_equal_writes) {
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  const std::vector<double> doubles{0.1, -1.0 / 3, 1.7976931348623157e308, 2.2250738585072014e-308};
  const std::vector<std::string> texts{"",      "'", "\"", "\\", "\\x41",   "NULL", "null",
                                       "{a,b}", "?", "$1", "%s", "a\nb\tc", " 7 ",  "\xe6\xbc\xa2",
                                       "once"};
  Rows expected;
  // The second half is counted, which a server may do in another way.
  const auto expect = [](std::size_t i) { return i < 30 ? Expect{} : rows(1); };
  define(under_test_->kinds_table());
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < 60; ++i) {
      const std::int64_t number = i == 0 ? -limit - 1 : i == 59 ? limit : static_cast<int>(i);
      const std::string& text = texts[i % texts.size()];
      const std::string bytes = every_byte.substr(0, i % 30 == 7 ? 256 : i * 3);
      const bool is_null = i % 4 == 3;
      ONCE_TRY(
          sql.execute("INSERT INTO kinds VALUES (?, ?, ?, ?, ?)",
                      {number, doubles[i % doubles.size()], is_null ? Value(nullptr) : Value(text),
                       Blob{bytes}, is_null ? Value(text) : Value(nullptr)},
                      expect(i)));
      expected.push_back({number, doubles[i % doubles.size()],
                          is_null ? Field(nullptr) : Field(text), bytes,
                          is_null ? Field(text) : Field(nullptr)});
    }
    return {};
  }));
  auto transaction = begin();
  EXPECT_EQ(transaction->sql()->query("SELECT * FROM kinds ORDER BY a").value(), expected);
}

// The result is another one if any two of them change places.
TEST_P(SqlStoreSuite, equal_writes_and_others_between_them_keep_their_order) {
  constexpr const char* fold =
      "UPDATE account SET balance = (balance * 31 + ?) % 10007 WHERE id = ?";
  constexpr const char* turn =
      "UPDATE account SET balance = (balance * 17 + ?) % 10009 WHERE id = ?";
  std::vector<std::int64_t> expected{100, 100, 100};
  for (const std::size_t length : {1u, 2u, 15u, 16u, 17u, 500u}) {
    ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
      for (std::size_t i = 0; i < std::max<std::size_t>(2 * length, 100); ++i) {
        const bool folds = i / length % 2 == 0;
        std::int64_t& balance = expected[i % 2];
        balance = folds ? (balance * 31 + static_cast<std::int64_t>(i)) % 10007
                        : (balance * 17 + static_cast<std::int64_t>(i)) % 10009;
        ONCE_TRY(sql.execute(folds ? fold : turn, {i, i % 2 + 1}, rows(1)));
      }
      return {};
    }));
    ASSERT_EQ(balances(), expected) << "in runs of " << length;
  }
}

TEST_P(SqlStoreSuite, many_rows_are_made_and_then_changed_and_read_in_between) {
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  for (std::size_t i = 0; i < 500; ++i) ASSERT_TRUE(sql.execute(insert_sql, {1000 + i, 1}));
  const Rows seen = sql.query("SELECT sum(balance) FROM account WHERE id >= ?", {1000}).value();
  EXPECT_EQ(seen.size(), 1u);
  for (std::size_t i = 0; i < 500; ++i) ASSERT_TRUE(sql.execute(add_sql, {i, 1000 + i}, rows(1)));
  EXPECT_EQ(sql.run(add_sql, std::vector<Value>{1, 1499}).value(), 1);
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  std::map<std::int64_t, std::int64_t> expected;
  for (std::int64_t i = 0; i < 500; ++i) expected[1000 + i] = i == 499 ? 501 : 1 + i;
  EXPECT_EQ(many_balances(), expected);
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

TEST_P(SqlStoreSuite, a_statement_that_worked_before_needs_all_its_values) {
  const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
    ONCE_TRY(sql.run(add_sql, {7, 2}));
    return sql.execute(add_sql, {7});
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().remedy, Remedy::stop);
  EXPECT_EQ(status.error().tag, "sql");
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
