// SPDX-License-Identifier: Apache-2.0
#include "model/sql_tables.h"

#include <gtest/gtest.h>

#include <string>

namespace once {
namespace {

// The names, separated by blanks; a routine has brackets behind it.
std::string names_in(std::string_view text, const SqlSyntax& syntax = mysql_syntax) {
  std::string all;
  for (const SqlName& name : written_tables(text, syntax)) {
    all += all.empty() ? "" : " ";
    for (std::size_t i = 0; i < name.path.size(); ++i) all += (i > 0 ? "." : "") + name.path[i];
    all += name.is_routine ? "()" : "";
  }
  return all;
}

TEST(SqlTables, what_is_written_is_found) {
  EXPECT_EQ(names_in("INSERT INTO a (b) VALUES (?)"), "a");
  EXPECT_EQ(names_in("insert ignore `s`.`a t` values (?)"), "s.a t");
  EXPECT_EQ(names_in("REPLACE INTO a VALUES (REPLACE(b, 'x', 'y'))"), "a");
  EXPECT_EQ(names_in("Insert Into A Values (?)", postgres_syntax), "a");
  EXPECT_EQ(names_in("UPDATE LOW_PRIORITY a SET b = 1"), "a");
  EXPECT_EQ(names_in("DELETE FROM a WHERE b = 1"), "a");
  EXPECT_EQ(names_in("EXPLAIN UPDATE a SET b = 1"), "a");
  EXPECT_EQ(names_in("/* UPDATE x SET */ UPDATE a SET b = 'UPDATE c SET'"), "a");
  EXPECT_EQ(names_in("CALL s.p(?)"), "s.p()");
  EXPECT_EQ(names_in("BEGIN INSERT INTO a VALUES (NEW.b); UPDATE c SET d = 1; END"), "a c");
  EXPECT_EQ(names_in("WITH x AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM x",
                     postgres_syntax),
            "a b");
  EXPECT_EQ(names_in("UPDATE ONLY \"S\".\"T\" SET a = 1", postgres_syntax), "S.T");
  EXPECT_EQ(names_in("UPDATE a JOIN c ON a.x = c.y SET a.z = 1"), "a JOIN c ON a.x c.y");
}

TEST(SqlTables, what_is_called_is_found) {
  EXPECT_EQ(names_in("SELECT f(?), s.g (1), `H`()"), "f() s.g() H()");
  EXPECT_EQ(names_in("select F(1), \"F\"(2), S.\"G\"(3)", postgres_syntax), "f() F() s.G()");
  EXPECT_EQ(names_in("INSERT INTO a (b, c) VALUES (f(?), (SELECT g() FROM d WHERE e IN (1)))"),
            "a f() g()");
  EXPECT_EQ(names_in("UPDATE a SET b = f(b) WHERE c = g(?)"), "a f() g()");
  EXPECT_EQ(names_in("UPDATE a JOIN c ON f(a.x) = c.y SET a.z = 1"), "a JOIN c ON f() a.x c.y");
  EXPECT_EQ(names_in("DELETE FROM a WHERE f(b) AND NOT (c = 1) OR (d)"), "a f()");
  EXPECT_EQ(names_in("BEGIN PERFORM f(NEW.a); x := s.g(); RETURN NEW; END", postgres_syntax),
            "f() s.g()");
  EXPECT_EQ(names_in("SELECT 'f()', f -- (\n FROM a"), "");
  EXPECT_EQ(names_in("SELECT a.b.f(1)"), "");
}

TEST(SqlTables, names_have_a_limit) {
  std::string statement = "SELECT 0";
  for (int i = 0; i < 1000; ++i) statement += ", f" + std::to_string(i) + "()";
  EXPECT_EQ(written_tables(statement, mysql_syntax).size(), 256u);
}

TEST(SqlTables, what_is_only_read_is_not) {
  EXPECT_EQ(names_in("SELECT * FROM a FOR UPDATE"), "");
  EXPECT_EQ(names_in("INSERT INTO a SELECT * FROM b"), "a");
  EXPECT_EQ(names_in("INSERT INTO a VALUES (1) ON DUPLICATE KEY UPDATE b = 2"), "a");
  EXPECT_EQ(
      names_in("INSERT INTO a VALUES (1) ON CONFLICT (b) DO UPDATE SET c = 2", postgres_syntax),
      "a");
}

}  // namespace
}  // namespace once
