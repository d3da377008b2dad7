// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <random>

#include "conformance/store_suite_sql.h"

namespace once::testing {

// Updates that only differ in their values, and find their row by a key. A store may run many of
// them as one statement; whatever it does, they come to the same as one by one.
class UpdateSuite : public SqlStoreSuite {
 protected:
  using Numbers = std::map<std::int64_t, std::int64_t>;
  static constexpr std::size_t many = 1000;
  static constexpr const char* fold_sql =
      "UPDATE account SET balance = (balance * 31 + ?) % 10007 WHERE id = ?";
  static std::int64_t fold(std::int64_t balance, std::size_t i) {
    return (balance * 31 + static_cast<std::int64_t>(i)) % 10007;
  }

  SqlDialect dialect() { return begin()->sql()->dialect(); }

  // Accounts from 1000 on, with nothing in them.
  void open_accounts(std::size_t count) {
    ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
      for (std::size_t i = 0; i < count; ++i)
        ONCE_TRY(sql.execute(insert_sql, {1000 + i, 0}, rows(1)));
      return {};
    }));
  }

  Rows all_of(const std::string& query) { return begin()->sql()->query(query).value(); }
};

TEST_P(UpdateSuite, of_the_same_rows_keep_their_order) {
  for (const std::size_t accounts : {1000u, 300u, 40u, 7u}) {
    reopen();
    ASSERT_TRUE(outcome_of(
        [](SqlTransaction& sql) { return sql.execute("DELETE FROM account WHERE id >= 1000"); }));
    open_accounts(accounts);
    Numbers expected;
    for (int round = 0; round < 2; ++round) {
      ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
        for (std::size_t i = 0; i < many; ++i) {
          const std::size_t id = 1000 + i * i % accounts;
          expected[static_cast<std::int64_t>(id)] =
              fold(expected[static_cast<std::int64_t>(id)], i);
          ONCE_TRY(sql.execute(fold_sql, {i, id}, round == 0 ? rows(1) : Expect{}));
        }
        return {};
      }));
      for (const auto& [id, balance] : many_balances())
        ASSERT_EQ(balance, expected[id]) << id << " of " << accounts << " in round " << round;
    }
  }
}

TEST_P(UpdateSuite, one_that_misses_its_row_is_named_and_the_first_of_two) {
  open_accounts(50);
  Numbers expected;
  for (std::size_t i = 0; i < many; ++i)
    if (i != 411 && i != 977) ++expected[static_cast<std::int64_t>(1000 + i % 50)];
  EXPECT_EQ(left_out_of(many,
                        [](SqlTransaction& sql, std::size_t i) {
                          const bool misses = i == 411 || i == 977;
                          return sql.execute(add_sql, {1, misses ? 77'777 : 1000 + i % 50},
                                             rows(1, rejected("no such account")));
                        }),
            (std::vector<std::size_t>{411, 977}));
  EXPECT_EQ(many_balances(), expected);
}

TEST_P(UpdateSuite, one_that_is_refused_is_named_as_if_it_were_alone) {
  open_accounts(500);
  Numbers expected;
  for (std::size_t i = 0; i < many; ++i)
    if (i != 20 && i != 640 && i != 999) ++expected[static_cast<std::int64_t>(1000 + i % 500)];
  const auto take_too_much = [](SqlTransaction& sql, std::size_t i) {
    const bool is_refused = i == 20 || i == 640 || i == 999;
    return sql.execute(add_sql, {is_refused ? -1000 : 1, 1000 + i % 500},
                       i % 2 == 0 ? rows(1) : rows(1, rejected("never")));
  };
  EXPECT_EQ(left_out_of(many, take_too_much), (std::vector<std::size_t>{20, 640, 999}));
  EXPECT_EQ(many_balances(), expected);
}

TEST_P(UpdateSuite, a_value_that_does_not_fit_is_refused_also_if_there_is_no_row_for_it) {
  open_accounts(100);
  const auto work = [](SqlTransaction& sql, std::size_t i) {
    const std::int64_t number = i == 60 || i == 70 ? 1LL << 40 : static_cast<int>(i);
    return sql.execute("UPDATE account SET balance = ? WHERE id = ?",
                       {number, i == 70 ? 77'777 : 1000 + i}, rows(i == 70 ? 0 : 1));
  };
  std::vector<std::size_t> refused;
  if (dialect() != SqlDialect::sqlite) refused.push_back(60);      // numbers of 32 bits
  if (dialect() == SqlDialect::postgresql) refused.push_back(70);  // values have types
  EXPECT_EQ(left_out_of(100, work), refused);
  for (const auto& [id, balance] : many_balances())
    EXPECT_EQ(balance, id == 1060 ? (refused.empty() ? 1LL << 40 : 0) : id == 1070 ? 0 : id - 1000);
}

TEST_P(UpdateSuite, null_is_a_value_and_finds_no_row) {
  open_accounts(100);
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < 100; ++i)
      ONCE_TRY(i % 3 == 0 ? sql.execute(add_sql, {nullptr, 1000 + i}, rows(1))
                          : sql.execute(add_sql, {i, 1000 + i}, rows(1)));
    return {};
  }));
  const Rows found = all_of("SELECT balance FROM account WHERE id >= 1000 ORDER BY id");
  ASSERT_EQ(found.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(found[i][0], i % 3 == 0 ? Field(nullptr) : Field(static_cast<std::int64_t>(i)));
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < 100; ++i)
      ONCE_TRY(
          i == 50
              ? sql.execute("UPDATE account SET balance = ? WHERE id = ?", {7, nullptr}, rows(0))
              : sql.execute("UPDATE account SET balance = ? WHERE id = ?", {7, 1000 + i}, rows(1)));
    return {};
  }));
  for (const auto& [id, balance] : many_balances()) EXPECT_EQ(balance, id == 1050 ? 50 : 7) << id;
}

TEST_P(UpdateSuite, a_trigger_sees_them_in_the_order_of_messages) {
  open_accounts(200);
  const auto update = [&](std::size_t from) {
    return outcome_of([&](SqlTransaction& sql) -> Status {
      for (std::size_t i = from; i < from + 200; ++i)
        ONCE_TRY(sql.execute(add_sql, {1, 1000 + i * 77 % 200}, rows(1)));
      return {};
    });
  };
  ASSERT_TRUE(update(0));  // what was learned of the table is not true any more
  const std::string note = "INSERT INTO effect (id) VALUES ";
  switch (dialect()) {
    case SqlDialect::mysql:
      define("CREATE TRIGGER noted AFTER UPDATE ON account FOR EACH ROW " + note + "(NEW.id)");
      reopen();  // made by somebody else, it would be seen within a minute
      break;
    case SqlDialect::sqlite:
      define("CREATE TRIGGER noted AFTER UPDATE ON account BEGIN " + note +
             "(CAST(NEW.id AS BLOB)); END");
      break;
    case SqlDialect::postgresql:
      define("CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN " + note +
             "(convert_to(NEW.id::text, 'UTF8')); RETURN NEW; END $$");
      define("CREATE TRIGGER noted AFTER UPDATE ON account FOR EACH ROW EXECUTE FUNCTION noted()");
  }
  ASSERT_TRUE(update(50));
  std::vector<std::string> expected;
  for (std::size_t i = 50; i < 250; ++i) expected.push_back(std::to_string(1000 + i * 77 % 200));
  EXPECT_EQ(effects(), expected);
  for (const auto& [id, balance] : many_balances()) EXPECT_EQ(balance, 2) << id;
}

TEST_P(UpdateSuite, a_column_that_is_unique_changes_row_by_row) {
  define("CREATE TABLE seat (id INTEGER PRIMARY KEY, place INTEGER UNIQUE)");
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 100; ++i) ONCE_TRY(sql.execute("INSERT INTO seat VALUES (?, ?)", {i, i}));
    return {};
  }));
  const auto move = [](SqlTransaction& sql, std::size_t id, std::size_t place) {
    return sql.execute("UPDATE seat SET place = ? WHERE id = ?", {place, id}, rows(1));
  };
  // Everybody moves up by one; only the last may begin.
  ASSERT_TRUE(left_out_of(100, [&](SqlTransaction& sql, std::size_t i) {
                return move(sql, 99 - i, 100 - i);
              }).empty());
  const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < 100; ++i) {
      sql.on_behalf_of(i);
      ONCE_TRY(move(sql, i, i + 2));
    }
    return {};
  });
  ASSERT_FALSE(status);
  ASSERT_TRUE(status.error().culprit);
  EXPECT_EQ(status.error().culprit->message, 0u);
  const Rows found = all_of("SELECT place FROM seat ORDER BY id");
  ASSERT_EQ(found.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(found[i][0], Field(static_cast<int>(i) + 1LL));
}

TEST_P(UpdateSuite, a_text_finds_the_rows_that_it_finds_alone) {
  define("CREATE TABLE named (name VARCHAR(20) PRIMARY KEY, state INTEGER)");
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 50; ++i)
      ONCE_TRY(sql.execute("INSERT INTO named VALUES (?, 0)", {fmt::format("name \"{}\\", i)}));
    return {};
  }));
  const bool is_same = dialect() == SqlDialect::mysql;  // in small letters and large ones
  Numbers expected;
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < many; ++i) {
      const auto number = static_cast<std::int64_t>(i * i % 50);
      const bool is_large = i % 3 == 0;
      const bool finds = is_same || !is_large;
      if (finds) expected[number] = fold(expected[number], i);
      ONCE_TRY(sql.execute("UPDATE named SET state = (state * 31 + ?) % 10007 WHERE name = ?",
                           {i, fmt::format("{} \"{}\\", is_large ? "NAME" : "name", number)},
                           rows(finds ? 1 : 0)));
    }
    return {};
  }));
  const Rows found = all_of("SELECT name, state FROM named");
  ASSERT_EQ(found.size(), 50u);
  for (const Row& row : found) {
    const auto number = std::stoll(std::get<std::string>(row[0]).substr(6));
    EXPECT_EQ(row[1], Field(expected[number])) << number;
  }
}

TEST_P(UpdateSuite, several_rows_of_a_key_are_all_counted) {
  define("CREATE TABLE part (whole INTEGER, number INTEGER, state INTEGER)");
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 90; ++i)
      ONCE_TRY(sql.execute("INSERT INTO part VALUES (?, ?, 0)", {i % 30, i / 30}));
    for (int i = 0; i < 90; ++i)
      ONCE_TRY(sql.execute("UPDATE part SET state = state * 3 + ? WHERE whole = ? AND number <> ?",
                           {i / 30, i % 30, i / 30}, rows(2)));
    return {};
  }));
  const Rows found = all_of("SELECT whole, number, state FROM part ORDER BY number, whole");
  ASSERT_EQ(found.size(), 90u);
  for (std::size_t i = 0; i < 90; ++i)
    EXPECT_EQ(found[i][2], Field(std::int64_t{i < 30 ? 5 : i < 60 ? 2 : 1})) << i;
}

TEST_P(UpdateSuite, a_table_is_what_it_is_in_this_transaction) {
  open_accounts(100);
  const auto update = [](SqlTransaction& sql) -> Status {
    for (std::size_t i = 0; i < 100; ++i) ONCE_TRY(sql.execute(add_sql, {i, 1000 + i}, rows(1)));
    return {};
  };
  ASSERT_TRUE(outcome_of(update));
  Rows hiding;
  constexpr const char* fresh_table =
      "CREATE TABLE fresh (id INTEGER PRIMARY KEY, balance INTEGER)";
  if (dialect() == SqlDialect::mysql) define(fresh_table);
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    if (sql.dialect() != SqlDialect::mysql) ONCE_TRY(sql.execute(fresh_table));
    ONCE_TRY(sql.execute("CREATE TEMPORARY TABLE account (id INTEGER, balance VARCHAR(20))"));
    for (std::size_t i = 0; i < 100; ++i) {
      ONCE_TRY(sql.execute("INSERT INTO account VALUES (?, '1')", {1000 + i}));
      ONCE_TRY(sql.execute("INSERT INTO account VALUES (?, '2')", {1000 + i}));
      ONCE_TRY(sql.execute("INSERT INTO fresh VALUES (?, 5)", {i}));
    }
    for (std::size_t i = 0; i < 100; ++i)
      ONCE_TRY(sql.execute("UPDATE account SET balance = ? WHERE id = ?",
                           {std::to_string(i), 1000 + i}, rows(2)));
    for (std::size_t i = 0; i < 100; ++i)
      ONCE_TRY(sql.execute("UPDATE fresh SET balance = balance + ? WHERE id = ?", {i, i}, rows(1)));
    hiding = ONCE_TRY(sql.query("SELECT id, balance FROM account ORDER BY id"));
    return sql.execute(sql.dialect() == SqlDialect::mysql ? "DROP TEMPORARY TABLE account"
                                                          : "DROP TABLE account");
  }));
  ASSERT_TRUE(outcome_of(update));
  ASSERT_EQ(hiding.size(), 200u);
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_EQ(hiding[i],
              (Row{static_cast<std::int64_t>(1000 + i / 2), Field(std::to_string(i / 2))}));
  for (const auto& [id, balance] : many_balances()) EXPECT_EQ(balance, 2 * (id - 1000)) << id;
  const Rows fresh = all_of("SELECT balance FROM fresh ORDER BY id");
  ASSERT_EQ(fresh.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(fresh[i][0], Field(static_cast<std::int64_t>(5 + i)));
}

TEST_P(UpdateSuite, names_may_be_anything) {
  const bool ticks = dialect() == SqlDialect::mysql;
  const auto quoted = [&](std::string statement) {
    if (ticks) std::replace(statement.begin(), statement.end(), '"', '`');
    return statement;
  };
  define(quoted(
      R"(CREATE TABLE "Order 7" ("select" INTEGER PRIMARY KEY, "Group" INTEGER, p1 INTEGER, )"
      R"(v INTEGER, n INTEGER, "current_date" INTEGER))"));
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 50; ++i)
      ONCE_TRY(
          sql.execute(quoted(R"(INSERT INTO "Order 7" VALUES (?, 1, 2, 3, 4, 5))"), {i}, rows(1)));
    for (int i = 0; i < 50; ++i)
      ONCE_TRY(sql.execute(quoted(R"(UPDATE "Order 7" SET "Group" = "Group" + ?, p1 = p1 * ?, )"
                                  R"(n = n + "current_date" WHERE ? = "select" AND N = 4)"),
                           {i, i, i}, rows(1)));
    for (int i = 0; i < 50; ++i)
      ONCE_TRY(sql.execute(quoted(R"(UPDATE "Order 7" SET v = v + ? )"
                                  R"(WHERE "select" = ?)"),
                           {i, i}, rows(1)));
    return {};
  }));
  const Rows found = all_of(quoted(R"(SELECT * FROM "Order 7" ORDER BY "select")"));
  ASSERT_EQ(found.size(), 50u);
  for (std::int64_t i = 0; i < 50; ++i)
    EXPECT_EQ(found[static_cast<std::size_t>(i)],
              (Row{i, 1 + i, 2 * i, 3 + i, std::int64_t{9}, std::int64_t{5}}));
}

// Random updates of a table, each run alone, and the same ones of a copy, many in a row.
TEST_P(UpdateSuite, many_come_to_the_same_as_each_alone) {
  std::mt19937 random(20'261'116);
  const auto upto = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(upto(static_cast<int>(from.size())))];
  };
  const std::vector<std::string> expressions{
      "a + ?",
      "?",
      "(a * 3 + ?) % 1009",
      "CASE WHEN b > ? THEN c ELSE b - ? END",
      "coalesce(?, a)",
      "abs(b - ?)",
      "CASE WHEN c IS NULL THEN ? WHEN b = 3 THEN NULL ELSE a + 0 END",
      "-a"};
  const std::vector<std::string> conditions{
      "",
      " AND b >= ?",
      " AND (c < ? OR c IS NULL)",
      " AND NOT a = ?",
      " AND ? < 40",
      " AND CASE WHEN b > 10 AND c > ? THEN 1 ELSE 0 END = 0"};
  for (const char* name : {"alone", "together"})
    define(fmt::format("CREATE TABLE {} (id BIGINT PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER)",
                       name));
  ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
    for (const char* name : {"alone", "together"}) {
      for (int i = 0; i < 60; ++i)
        ONCE_TRY(sql.execute(fmt::format("INSERT INTO {} VALUES (?, ?, ?, ?)", name),
                             {i, i, i % 20, i % 7 == 0 ? Value(nullptr) : Value(i % 30)}));
    }
    return {};
  }));
  for (int round = 0; round < 40; ++round) {
    const std::string columns = pick({"a = {}", "b = {}", "c = {}, b = b + 1", "a = {}, c = ?"});
    const std::string rest = fmt::format(fmt::runtime(" SET " + columns), pick(expressions)) +
                             " WHERE " + pick({"id = ?", "? = id"}) + pick(conditions);
    const auto parameters = static_cast<std::size_t>(std::count(rest.begin(), rest.end(), '?'));
    const std::size_t where = rest.find(" WHERE ");
    const auto key = static_cast<std::size_t>(
        std::count(rest.begin(), rest.begin() + static_cast<long>(where), '?'));
    const int ids = pick({"a", "b"}) == "a" ? 64 : 20;
    std::vector<std::vector<Value>> all;
    for (int i = 0; i < 150; ++i) {
      std::vector<Value> values;
      for (std::size_t p = 0; p < parameters; ++p)
        values.push_back(p == key        ? Value(upto(ids))
                         : upto(20) == 0 ? Value(nullptr)
                                         : Value(upto(50)));
      all.push_back(std::move(values));
    }
    std::vector<std::int64_t> counts;
    ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
      for (const auto& values : all)
        counts.push_back(ONCE_TRY(sql.run("UPDATE alone" + rest, values)));
      return {};
    })) << rest;
    ASSERT_TRUE(outcome_of([&](SqlTransaction& sql) -> Status {
      for (std::size_t i = 0; i < all.size(); ++i)
        ONCE_TRY(sql.execute("UPDATE together" + rest, all[i], rows(counts[i])));
      return {};
    })) << rest;
    ASSERT_EQ(all_of("SELECT * FROM alone ORDER BY id"),
              all_of("SELECT * FROM together ORDER BY id"))
        << rest;
  }
}

// For stores that run many as one: otherwise all of the above would say nothing. The others need
// not: one by one costs nothing where there is no server.
class TogetherSuite : public UpdateSuite {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TogetherSuite);

TEST_P(TogetherSuite, many_are_run_as_one) {
  open_accounts(100);
  const bool is_mysql = dialect() == SqlDialect::mysql;
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  const auto statements = [&] {
    const Rows found =
        sql.query(is_mysql ? "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM "
                             "information_schema.SESSION_STATUS "
                             "WHERE VARIABLE_NAME = 'Com_update_multi'"
                           : "SELECT count(DISTINCT cmin::text) FROM account WHERE id >= 1000")
            .value();
    return std::get<std::int64_t>(found.at(0).at(0));
  };
  const std::int64_t before = is_mysql ? statements() : 0;
  for (std::size_t i = 0; i < 100; ++i) ASSERT_TRUE(sql.execute(add_sql, {1, 1099 - i}, rows(1)));
  EXPECT_EQ(statements() - before, 1);
  ASSERT_TRUE(transaction->commit());
}

}  // namespace once::testing
