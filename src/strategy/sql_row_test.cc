// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>

#include "strategy/fake_sql_testing.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

using testing::FakeSql;
using Texts = std::vector<std::string>;

constexpr std::array dialects{SqlDialect::sqlite, SqlDialect::postgresql, SqlDialect::mysql};

LockedRows lock(FakeSql& sql, std::initializer_list<Value> names, std::int64_t wait_ms_max = 0) {
  return row_lock(sql, "account", "name", names, {"name"}, wait_ms_max).value();
}

// What docs/strategies.md says, to the letter.
TEST(SqlRow, inserts_if_the_key_is_absent_in_every_dialect) {
  const Texts expected{
      "INSERT INTO flow (transfer, account, amount) VALUES (?, ?, ?) "
      "ON CONFLICT (transfer, account) DO NOTHING",
      "INSERT INTO flow (transfer, account, amount) VALUES (?, ?, ?) "
      "ON CONFLICT (transfer, account) DO NOTHING",
      "INSERT INTO flow (transfer, account, amount) VALUES (?, ?, ?) "
      "ON DUPLICATE KEY UPDATE transfer = IF(LAST_INSERT_ID(?) = 0, transfer, transfer)"};
  for (std::size_t i = 0; i < dialects.size(); ++i) {
    FakeSql sql(dialects[i]);
    sql.touched = {1, 0};
    for (const auto answer : {UniqueAnswer::inserted, UniqueAnswer::present})
      EXPECT_EQ(unique(sql, "flow", {{"transfer", "t"}, {"account", "A"}}, {{"amount", 100}}),
                answer);
    EXPECT_EQ(sql.statements, (Texts{expected[i], expected[i]}));
    sql.values[0].resize(3);  // MySQL's has one more
    EXPECT_EQ(sql.values[0], (Row{"t", "A", std::int64_t{100}}));
  }
}

TEST(SqlRow, a_connection_of_mysql_that_counts_found_rows_is_not_believed) {
  FakeSql sql(SqlDialect::mysql);
  sql.touched = {1, 1};
  EXPECT_EQ(unique(sql, "flow", {{"transfer", "t"}}), UniqueAnswer::inserted);
  sql.found_rows = true;
  EXPECT_EQ(unique(sql, "flow", {{"transfer", "t"}}), UniqueAnswer::present);
}

TEST(SqlRow, locks_where_the_dialect_has_locks) {
  const std::string plain = "SELECT name FROM account WHERE name = ?";
  for (const SqlDialect dialect : dialects) {
    FakeSql sql(dialect);
    sql.found = {{{"A"}}};
    EXPECT_EQ(lock(sql, {"A"}).answer, LockAnswer::locked);
    const bool locks = dialect != SqlDialect::sqlite;
    EXPECT_EQ(sql.statements, (Texts{plain + (locks ? " FOR UPDATE SKIP LOCKED" : "")}));
  }
}

TEST(SqlRow, H18_a_row_that_another_has_is_busy_and_not_waited_for) {
  FakeSql sql(SqlDialect::postgresql);
  sql.found = {{}, {{"A"}}};
  EXPECT_EQ(lock(sql, {"A"}).answer, LockAnswer::busy);
  EXPECT_EQ(sql.statements, (Texts{"SELECT name FROM account WHERE name = ? FOR UPDATE SKIP LOCKED",
                                   "SELECT name FROM account WHERE name = ?"}));
}

TEST(SqlRow, a_wait_for_a_lock_has_an_end) {
  FakeSql sql(SqlDialect::mysql);
  for (int i = 0; i < 50; ++i) {
    sql.found.push_back({});
    sql.found.push_back({{"A"}});
  }
  EXPECT_EQ(lock(sql, {"A"}, 20).answer, LockAnswer::busy);
  const std::size_t asked = sql.statements.size();
  EXPECT_GT(asked, 4u);
  EXPECT_LT(asked, 40u);
  sql.found = {{}, {{"A"}}, {}, {{"A"}}, {{"A"}}};  // free at the third look
  EXPECT_EQ(lock(sql, {"A"}, 1'000).answer, LockAnswer::locked);
}

TEST(SqlRow, a_row_that_a_snapshot_does_not_show_is_not_said_to_be_missing) {
  FakeSql sql(SqlDialect::mysql);
  sql.found = {{}, {}, {{"A"}}};
  EXPECT_EQ(lock(sql, {"A"}).answer, LockAnswer::locked);
  EXPECT_EQ(sql.statements.at(2), "SELECT name FROM account WHERE name = ? FOR UPDATE NOWAIT");
  sql.found = {{}, {}, {}};
  EXPECT_EQ(lock(sql, {"A"}).answer, LockAnswer::missing);
}

TEST(SqlRow, rows_are_locked_in_one_order_and_answered_in_the_order_of_their_names) {
  FakeSql sql(SqlDialect::postgresql);
  sql.found = {{{"a"}}, {{"a"}}, {{"b"}}, {{"c"}}};
  EXPECT_EQ(lock(sql, {"C", "A", "B", "A"}).rows, (Rows{{"c"}, {"a"}, {"b"}, {"a"}}));
  const std::vector<Row> order{{"A"}, {"A"}, {"B"}, {"C"}};
  EXPECT_EQ(sql.values, order);
}

TEST(SqlRow, numbers_are_locked_in_the_order_of_numbers) {
  FakeSql sql(SqlDialect::postgresql);
  sql.found.assign(3, {{"x"}});
  EXPECT_EQ(lock(sql, {10, 9, -1}).answer, LockAnswer::locked);
  const std::vector<Row> order{{std::int64_t{-1}}, {std::int64_t{9}}, {std::int64_t{10}}};
  EXPECT_EQ(sql.values, order);
}

TEST(SqlRow, version_writes_under_the_version_it_has_read) {
  FakeSql sql(SqlDialect::postgresql);
  sql.found = {{{std::int64_t{500}, std::int64_t{7}}}};
  const auto add = [](Row& row) -> Result<Edit> {
    row[0] = std::get<std::int64_t>(row[0]) + 100;
    return Edit::write;
  };
  EXPECT_EQ(version(sql, "account", {{"name", "A"}}, {"balance"}, add), VersionAnswer::changed);
  EXPECT_EQ(sql.statements,
            (Texts{"SELECT balance, version FROM account WHERE name = ?",
                   "UPDATE account SET balance = ?, version = ? WHERE name = ? AND version = ?"}));
  EXPECT_EQ(sql.values[1], (Row{std::int64_t{600}, std::int64_t{8}, "A", std::int64_t{7}}));
}

// The first look may be at a snapshot that stays the same for the whole transaction.
TEST(SqlRow, version_looks_again_with_a_lock_and_gives_up_in_the_end) {
  const Row old{std::int64_t{500}, std::int64_t{7}};
  FakeSql sql(SqlDialect::mysql);
  sql.found = {{old}, {old}, {old}};
  sql.touched = {0, 0, 0};
  int edits = 0;
  const auto edit = [&](Row& row) -> Result<Edit> {
    ++edits;
    EXPECT_EQ(row, (Row{std::int64_t{500}}));
    row[0] = std::int64_t{600};
    return Edit::write;
  };
  EXPECT_EQ(version(sql, "account", {{"name", "A"}}, {"balance"}, edit), VersionAnswer::contended);
  EXPECT_EQ(edits, 3);
  ASSERT_EQ(sql.statements.size(), 6u);
  EXPECT_EQ(sql.statements[0], "SELECT balance, version FROM account WHERE name = ?");
  EXPECT_EQ(sql.statements[2], "SELECT balance, version FROM account WHERE name = ? FOR UPDATE");
  EXPECT_EQ(sql.statements[4], sql.statements[2]);
}

TEST(SqlRow, version_writes_only_what_was_changed) {
  FakeSql sql(SqlDialect::sqlite);
  sql.found = {{{"bytes", std::int64_t{1}, std::int64_t{7}}}};
  const auto edit = [](Row& row) -> Result<Edit> {
    row[1] = std::int64_t{2};
    return Edit::write;
  };
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, {"picture", "number"}, edit), VersionAnswer::changed);
  EXPECT_EQ(sql.statements[1], "UPDATE t SET number = ?, version = ? WHERE k = ? AND version = ?");
}

TEST(SqlRow, a_fence_is_compared_and_stored_in_one_statement) {
  FakeSql sql(SqlDialect::postgresql);
  EXPECT_EQ(fenced_write(sql, "stock", {{"item", "x"}}, 3, {{"amount", 9}}), FenceAnswer::written);
  EXPECT_EQ(sql.statements,
            (Texts{"UPDATE stock SET amount = ?, fence = ? WHERE item = ? AND fence <= ?"}));
  EXPECT_EQ(sql.values[0], (Row{std::int64_t{9}, std::int64_t{3}, "x", std::int64_t{3}}));
}

// MySQL says 0 for a row that is already as it should be.
TEST(SqlRow, a_fenced_write_that_changes_nothing_is_written) {
  for (const auto& [stored, answer] :
       {std::pair{3, FenceAnswer::written}, {4, FenceAnswer::stale}}) {
    FakeSql sql(SqlDialect::mysql);
    sql.touched = {0};
    sql.found = {{{std::int64_t{stored}}}};
    EXPECT_EQ(fenced_write(sql, "stock", {{"item", "x"}}, 3, {{"amount", 9}}), answer);
    EXPECT_EQ(sql.statements.at(1), "SELECT fence FROM stock WHERE item = ? FOR UPDATE");
  }
}

TEST(SqlRow, a_token_is_redeemed_by_one_conditional_write) {
  FakeSql sql(SqlDialect::postgresql);
  const std::string token = issue_token(sql, "token", "form", 1'000).value();
  EXPECT_EQ(redeem_token(sql, "token", "form", token), TokenAnswer::redeemed);
  EXPECT_EQ(sql.statements,
            (Texts{"INSERT INTO token (digest, issued_ms, expires_ms, used_ms) VALUES (?, ?, ?, ?) "
                   "ON CONFLICT (digest) DO NOTHING",
                   "UPDATE token SET used_ms = ? WHERE digest = ? AND used_ms = ? "
                   "AND expires_ms > ?"}));
  EXPECT_EQ(sql.values[0][0], sql.values[1][1]);
  EXPECT_NE(sql.values[0][0], Field(token));  // what is in the table cannot be redeemed
}

TEST(SqlRow, a_token_that_the_database_has_already_is_not_handed_out) {
  FakeSql sql(SqlDialect::postgresql);
  sql.touched = {0};
  EXPECT_FALSE(issue_token(sql, "token", "form", 1'000));
}

TEST(SqlRow, names_that_are_no_names_never_reach_a_statement) {
  FakeSql sql(SqlDialect::sqlite);
  const std::string longest(63, 'a');
  EXPECT_TRUE(unique(sql, longest, {{"k", 1}}));
  sql.statements.clear();
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a;--"), std::string("1a"), std::string("A"),
        std::string("a\"b"), std::string("ä"), longest + "a", std::string("a\0b", 3)}) {
    EXPECT_EQ(unique(sql, bad, {{"k", 1}}).error().tag, "config") << bad;
    EXPECT_EQ(unique(sql, "t", {{bad, 1}}).error().tag, "config") << bad;
    EXPECT_EQ(unique(sql, "t", {{"k", 1}}, {{bad, 1}}).error().tag, "config") << bad;
    EXPECT_EQ(fenced_write(sql, "t", {{"k", 1}}, 1, {{bad, 1}}).error().tag, "config") << bad;
    EXPECT_EQ(row_lock(sql, "t", bad, {1}, {"a"}).error().tag, "config") << bad;
    EXPECT_EQ(row_lock(sql, "t", "k", {1}, {bad}).error().tag, "config") << bad;
    EXPECT_EQ(version(sql, "t", {{"k", 1}}, {bad}, [](Row&) -> Result<Edit> { return Edit::keep; })
                  .error()
                  .tag,
              "config")
        << bad;
  }
  EXPECT_EQ(sql.statements, Texts{});
}

TEST(SqlRow, what_cannot_be_meant_is_refused) {
  FakeSql sql(SqlDialect::sqlite);
  EXPECT_EQ(unique(sql, "once_ledger", {{"id", 1}}).error().tag, "config");
  EXPECT_EQ(unique(sql, "t", {}).error().tag, "config");
  EXPECT_EQ(unique(sql, "t", {{"k", 1}}, {{"k", 2}}).error().tag, "config");
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, 1, {{"version", 9}}).error().tag, "config");
  EXPECT_EQ(fenced_write(sql, "t", {{"k", 1}}, 1, {{"fence", 9}}).error().tag, "config");
  EXPECT_EQ(issue_token(sql, "token", "form", 0).error().tag, "config");
  EXPECT_EQ(row_lock(sql, "t", "k", {1}, {"a"}, -1).error().tag, "config");
  EXPECT_EQ(row_lock(sql, "t", "k", {1}, {"a"}, 60'001).error().tag, "config");
  const EditRow drop = [](Row& row) -> Result<Edit> {
    row.clear();
    return Edit::write;
  };
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, {"a"}, drop, 0).error().tag, "config");
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, {"a"}, drop, 101).error().tag, "config");
  EXPECT_EQ(sql.statements, Texts{});
  sql.found = {{{std::int64_t{1}, std::int64_t{1}}}, {{std::int64_t{1}, nullptr}}};
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, {"a"}, drop).error().tag, "config");
  EXPECT_EQ(version(sql, "t", {{"k", 1}}, {"a"}, drop).error().tag, "config");
}

}  // namespace
}  // namespace once
