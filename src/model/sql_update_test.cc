// SPDX-License-Identifier: Apache-2.0
#include "model/sql_update.h"

#include <gtest/gtest.h>

namespace once {
namespace {

constexpr const SqlSyntax& postgres = postgres_syntax;
constexpr const SqlSyntax& mysql = mysql_syntax;

using Names = std::set<std::string>;
using Keys = std::vector<KeyedUpdate::Key>;

std::string p(std::size_t parameter) { return "<" + std::to_string(parameter) + ">"; }

TEST(SqlUpdate, the_usual_one_is_known) {
  const auto update =
      keyed_update("UPDATE account SET balance = balance + ? WHERE number = ?", postgres);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->table, "account");
  EXPECT_EQ(update->path, std::vector<std::string>{"account"});
  EXPECT_EQ(update->assigned, Names{"balance"});
  EXPECT_EQ(update->computed, Names{"balance"});
  EXPECT_EQ(update->read, (Names{"balance", "number"}));
  EXPECT_EQ(update->keys, (Keys{{"number", 1}}));
  EXPECT_EQ(update->is_plain, (std::vector<bool>{false, false}));
  EXPECT_FALSE(update->reads_assigned);
  EXPECT_EQ(update->set_with(p), " balance = balance + <0> ");
  EXPECT_EQ(update->where_with(p), " number = <1> ");
}

TEST(SqlUpdate, several_columns_and_conditions) {
  const auto update = keyed_update(
      "update a set b = ?, c = coalesce(c, ?) * 1.5, d = 'it''s ?' where e > ? and ? = f and "
      "(g = ? or h is null) and i = ?",
      postgres);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->assigned, (Names{"b", "c", "d"}));
  EXPECT_EQ(update->computed, Names{"c"});
  EXPECT_EQ(update->read, (Names{"c", "e", "f", "g", "h", "i"}));
  EXPECT_EQ(update->keys, (Keys{{"f", 3}, {"i", 5}}));
  EXPECT_EQ(update->is_plain, (std::vector<bool>{true, false, false, false, false, false}));
  EXPECT_EQ(update->set_with(p), " b = <0> , c = coalesce(c, <1> ) * 1.5, d = 'it''s ?'");
  EXPECT_EQ(update->where_with(p),
            " e > <2>  and <3>  = f and (g = <4>  or h is null) and i = <5> ");
}

TEST(SqlUpdate, and_inside_of_case_does_not_end_a_condition) {
  const auto update = keyed_update(
      "UPDATE a SET b = CASE WHEN b > ? AND b < 9 THEN b - 1 ELSE 0 END "
      "WHERE CASE WHEN c THEN true AND d ELSE e = ? END AND k=?",
      postgres);
  ASSERT_TRUE(update);
  EXPECT_EQ(update->keys, (Keys{{"k", 2}}));
  EXPECT_EQ(update->read, (Names{"b", "c", "d", "e", "k"}));
}

TEST(SqlUpdate, names_are_those_that_the_server_keeps) {
  const auto quoted = keyed_update(
      R"(UPDATE "My Shop"."Order" SET "Group" = ?, State = STATE + 1 WHERE "select" = ?)",
      postgres);
  ASSERT_TRUE(quoted);
  EXPECT_EQ(quoted->table, R"("My Shop"."Order")");
  EXPECT_EQ(quoted->path, (std::vector<std::string>{"My Shop", "Order"}));
  EXPECT_EQ(quoted->assigned, (Names{"Group", "state"}));
  EXPECT_EQ(quoted->keys, (Keys{{"select", 1}}));
  const auto ticks =
      keyed_update("UPDATE Shop.`Order` SET `Group` = \"a\" WHERE `Select` = ?", mysql);
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->path, (std::vector<std::string>{"Shop", "Order"}));
  EXPECT_EQ(ticks->assigned, Names{"group"});
  EXPECT_EQ(ticks->keys, (Keys{{"select", 0}}));
}

TEST(SqlUpdate, an_assigned_column_that_another_one_reads_is_noticed) {
  const auto reads = [](const char* statement) {
    return keyed_update(statement, mysql).value().reads_assigned;
  };
  EXPECT_TRUE(reads("UPDATE t SET a = a + 1, b = a WHERE k = ?"));
  EXPECT_TRUE(reads("UPDATE t SET b = `A`, a = a + 1 WHERE k = ?"));
  EXPECT_FALSE(reads("UPDATE t SET a = a + 1, b = b + c WHERE k = ? AND a = b"));
}

TEST(SqlUpdate, a_key_is_compared_with_a_parameter_and_not_changed) {
  for (const char* statement :
       {"UPDATE t SET a = 1 WHERE k > ?", "UPDATE t SET a = 1 WHERE k = 1",
        "UPDATE t SET a = 1 WHERE k = ? + 0", "UPDATE t SET a = 1 WHERE k = j",
        "UPDATE t SET a = 1 WHERE NOT k = ?", "UPDATE t SET a = 1 WHERE k = ? = ?",
        "UPDATE t SET a = 1 WHERE (k = ?)", "UPDATE t SET k = 1 WHERE k = ?",
        "UPDATE t SET k = ? WHERE K = ?", "UPDATE t SET \"k\" = ? WHERE k = ?",
        "UPDATE t SET a = 1 WHERE ? = ?", "UPDATE t SET a = 1 WHERE k <> ?",
        "UPDATE t SET a = 1 WHERE k = -?"})
    EXPECT_FALSE(keyed_update(statement, postgres)) << statement;
}

TEST(SqlUpdate, what_could_mean_more_is_not_known) {
  for (const char* statement : {"",
                                "UPDATE",
                                "UPDATE t",
                                "UPDATE t SET",
                                "UPDATE t SET a = 1",
                                "UPDATE t SET a = ? WHERE",
                                "UPDATE t SET a = WHERE k = ?",
                                "UPDATE t SET WHERE k = ?",
                                "UPDATE t SET a = 1, WHERE k = ?",
                                "UPDATE t SET a = 1 WHERE k = ? AND",
                                "UPDATE t SET a = 1, a = 2 WHERE k = ?",
                                "UPDATE ONLY t SET a = 1 WHERE k = ?",
                                "UPDATE t * SET a = 1 WHERE k = ?",
                                "UPDATE t AS x SET a = 1 WHERE k = ?",
                                "UPDATE t x SET a = 1 WHERE k = ?",
                                "UPDATE t, u SET a = 1 WHERE k = ?",
                                "UPDATE t JOIN u ON 1 SET a = 1 WHERE k = ?",
                                "UPDATE d.s.t SET a = 1 WHERE k = ?",
                                "UPDATE once_ledger SET a = 1 WHERE k = ?",
                                "UPDATE \"Once_x\" SET a = 1 WHERE k = ?",
                                "UPDATE t SET a = once_p1 WHERE k = ?",
                                "UPDATE t SET a = \"once_p1\" WHERE k = ?",
                                "UPDATE t SET once_p1 = 1 WHERE k = ?",
                                "UPDATE t SET t.a = 1 WHERE k = ?",
                                "UPDATE t SET a = t.a WHERE k = ?",
                                "UPDATE t SET a = 1 WHERE t.k = ?",
                                "UPDATE t SET a = 1 WHERE CURRENT OF c"})
    EXPECT_FALSE(keyed_update(statement, postgres)) << statement;
}

TEST(SqlUpdate, expressions_that_could_mean_more_are_not_known) {
  for (const char* statement : {"UPDATE t SET (a, b) = (1, 2) WHERE k = ?",
                                "UPDATE t SET a[1] = 1 WHERE k = ?",
                                "UPDATE t SET a = random() WHERE k = ?",
                                "UPDATE t SET a = \"abs\"(a) WHERE k = ?",
                                "UPDATE t SET a = now() WHERE k = ?",
                                "UPDATE t SET a = current_timestamp WHERE k = ?",
                                "UPDATE t SET a = DEFAULT WHERE k = ?",
                                "UPDATE t SET a = (SELECT 1) WHERE k = ?",
                                "UPDATE t SET a = ?::bigint WHERE k = ?",
                                "UPDATE t SET a = CAST(? AS bigint) WHERE k = ?",
                                "UPDATE t SET a = b -> 'c' WHERE k = ?",
                                "UPDATE t SET a = a @ b WHERE k = ?",
                                "UPDATE t SET a = a & ? WHERE k = ?",
                                "UPDATE t SET a = a <=> ? WHERE k = ?",
                                "UPDATE t SET a = a !! b WHERE k = ?",
                                "UPDATE t SET a = E'x' WHERE k = ?",
                                "UPDATE t SET a = $$x$$ WHERE k = ?",
                                "UPDATE t SET a = 'x WHERE k = ?",
                                "UPDATE t SET a = ?? WHERE k = ?",
                                "UPDATE t SET a = (1 WHERE k = ?",
                                "UPDATE t SET a = 1) WHERE k = ?",
                                "UPDATE t SET a = CASE WHEN b THEN 1 WHERE k = ?",
                                "UPDATE t SET a = .5 WHERE k = ?",
                                "UPDATE t SET \"a\"\"b\" = 1 WHERE k = ?",
                                "UPDATE t SET a = \xc3\xa4 WHERE k = ?",
                                "UPDATE t SET a = 1 WHERE k = ? OR a = 2",
                                "UPDATE t SET a = 1 WHERE k = ? OR true AND b = ?",
                                "UPDATE t SET a = 1 WHERE k = ? AND a IN (1, 2)",
                                "UPDATE t SET a = 1 WHERE k = ? AND a BETWEEN 1 AND 2",
                                "UPDATE t SET a = 1 WHERE k = ? AND a LIKE 'x'",
                                "UPDATE t SET a = 1 WHERE k = ?, b = ?",
                                "UPDATE t SET a = 1 WHERE k = ? RETURNING a",
                                "UPDATE t SET a = 1 FROM u WHERE k = ?",
                                "UPDATE t SET a = 1 WHERE k = ? LIMIT 1",
                                "UPDATE t SET a = 1 WHERE k = ? ORDER BY a",
                                "UPDATE t SET a = 1 WHERE k = ?;",
                                "UPDATE t SET a = 1 -- why\n WHERE k = ?",
                                "UPDATE t SET a = 1 /* why */ WHERE k = ?",
                                "/* why */ UPDATE t SET a = 1 WHERE k = ?",
                                "WITH x AS (SELECT 1) UPDATE t SET a = 1 WHERE k = ?",
                                "EXPLAIN UPDATE t SET a = 1 WHERE k = ?",
                                "INSERT INTO t VALUES (?)",
                                "DELETE FROM t WHERE k = ?"})
    EXPECT_FALSE(keyed_update(statement, postgres)) << statement;
  for (const char* statement :
       {"UPDATE t SET a = a || ? WHERE k = ?", "UPDATE IGNORE t SET a = 1 WHERE k = ?",
        "UPDATE t SET a = 1 # why\n WHERE k = ?", "UPDATE t SET a = a DIV 2 WHERE k = ?",
        "UPDATE t SET a = _latin1'x' WHERE k = ?", "UPDATE t SET a = @x WHERE k = ?",
        "UPDATE t SET a = 1 WHERE k = ? /*! OR 1 */", "UPDATE t SET a = a := 1 WHERE k = ?"})
    EXPECT_FALSE(keyed_update(statement, mysql)) << statement;
}

TEST(SqlUpdate, what_is_known_of_a_table_does_not_outlive_a_change_of_it) {
  for (const char* statement : {"CREATE TEMP TABLE t (a int)", " alter table t add b int",
                                "SET search_path = x", "DROP TABLE t", "/* why */ SELECT 1"})
    EXPECT_TRUE(may_change_tables(statement)) << statement;
  for (const char* statement :
       {"SELECT 1", "\ninsert into t values (1)", "UPDATE t SET a = 1", "COMMIT", "SAVEPOINT x"})
    EXPECT_FALSE(may_change_tables(statement)) << statement;
}

}  // namespace
}  // namespace once
