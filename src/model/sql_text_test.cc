// SPDX-License-Identifier: Apache-2.0
#include "model/sql_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace once {
namespace {

constexpr const SqlSyntax& sqlite = sqlite_syntax;
constexpr const SqlSyntax& postgres = postgres_syntax;
constexpr const SqlSyntax& mysql = mysql_syntax;

// Every parameter as <>, every quoted piece as its length in brackets.
std::string sketch(std::string_view statement, const SqlSyntax& syntax) {
  std::string made;
  std::string whole;
  split_sql(statement, syntax, [&](SqlPiece piece, std::string_view text) {
    whole += text;
    if (piece == SqlPiece::unclosed)
      made += "[open]";
    else if (piece == SqlPiece::quoted)
      made += "[" + std::to_string(text.size()) + "]";
    else
      made += piece == SqlPiece::parameter ? std::string_view("<>") : text;
  });
  EXPECT_EQ(whole, statement);
  return made;
}

TEST(SqlText, the_first_word_says_whether_it_writes) {
  EXPECT_EQ(first_word("\n  UPDATE a SET b = 1"), "update");
  EXPECT_EQ(first_word("/* why */ UPDATE a"), "");
  EXPECT_EQ(first_word(""), "");
  EXPECT_TRUE(is_write("insert into a values (?)"));
  EXPECT_TRUE(is_write("Replace INTO a VALUES (?)"));
  EXPECT_FALSE(is_write("updated"));
  EXPECT_FALSE(is_write("SELECT 1"));
  EXPECT_FALSE(is_write("WITH x AS (SELECT 1) DELETE FROM a"));
}

TEST(SqlText, what_is_quoted_is_not_looked_into) {
  EXPECT_EQ(sketch("a = ? AND b = '?'", postgres), "a = <> AND b = [3]");
  EXPECT_EQ(sketch("? -- ?\n?", postgres), "<> [5]<>");
  EXPECT_EQ(sketch("$x$ ? $x$ ?", postgres), "[9] <>");
  EXPECT_EQ(sketch("`a?` = ? # ?", mysql), "[4] = <> [3]");
  EXPECT_EQ(sketch("'\\'?' ?", mysql), "[5] <>");
  EXPECT_EQ(sketch("'\\' ?", postgres), "[3] <>");  // there a backslash is just one
  EXPECT_EQ(sketch("\"\\\"?\" ?", mysql), "[5] <>");
  EXPECT_EQ(sketch("/* ? */ ?", mysql), "[7] <>");
  EXPECT_EQ(sketch("a 'b", mysql), "a [open]");
  EXPECT_EQ(sketch("'\\'", mysql), "[open]");
  EXPECT_EQ(sketch("/* a", postgres), "[open]");
  EXPECT_EQ(sketch("$x$ a", postgres), "[open]");
  EXPECT_EQ(sketch("a -- b", postgres), "a [4]");
}

// Found with LIKE'\': the E of another word is no mark, and a backslash is none either.
TEST(SqlText, backslashes_escape_only_where_the_dialect_says_so) {
  EXPECT_EQ(sketch("a LIKE '\\' AND b = ?", postgres), "a LIKE [3] AND b = <>");
  EXPECT_EQ(sketch("a LIKE'\\' AND b = ?", postgres), "a LIKE[3] AND b = <>");
  EXPECT_EQ(sketch("a LIKE'\\' AND b = ?", sqlite), "a LIKE[3] AND b = <>");
  EXPECT_EQ(sketch("a ESCAPE'\\' AND b = ?", postgres), "a ESCAPE[3] AND b = <>");
  EXPECT_EQ(sketch("a = E'\\'?' AND b = ?", postgres), "a = E[5] AND b = <>");
  EXPECT_EQ(sketch("a = e'\\'?' AND b = ?", postgres), "a = e[5] AND b = <>");
  EXPECT_EQ(sketch("E'\\'?' ?", postgres), "E[5] <>");
  EXPECT_EQ(sketch("E'\\' ?", sqlite), "E[3] <>");
  EXPECT_EQ(sketch("E'a''\\'?' ?", postgres), "E[8] <>");
  EXPECT_EQ(sketch("E'a'\n'\\'?' ?", postgres), "E[3]\n[5] <>");
  EXPECT_EQ(sketch("E'a' '\\' ?", postgres), "E[3] [3] <>");
  EXPECT_EQ(sketch("a LIKE '\\\\' AND b = ?", mysql), "a LIKE [4] AND b = <>");
}

TEST(SqlText, a_doubled_quote_stays_inside) {
  EXPECT_EQ(sketch("'it''s ?' ?", postgres), "[9] <>");
  EXPECT_EQ(sketch("'it''s ?", mysql), "[open]");
  EXPECT_EQ(sketch("\"a\"\"?\" ?", postgres), "[6] <>");
  EXPECT_EQ(sketch("`a``?` ?", mysql), "[6] <>");
}

TEST(SqlText, comments_are_those_of_the_dialect) {
  EXPECT_EQ(sketch("5--? \n", mysql), "5--<> \n");
  EXPECT_EQ(sketch("5-- ?", mysql), "5[4]");
  EXPECT_EQ(sketch("5--?", postgres), "5[3]");
  EXPECT_EQ(sketch("/* /* */ ? */ ?", postgres), "[13] <>");
  EXPECT_EQ(sketch("/* /* */ ? ", mysql), "[8] <> ");
  EXPECT_EQ(sketch("/* /* */ ?", postgres), "[open]");
  EXPECT_EQ(sketch("/*/ ?", mysql), "[open]");
}

TEST(SqlText, names_may_stand_in_brackets) {
  EXPECT_EQ(sketch("[a'?] = ?", sqlite), "[5] = <>");
  EXPECT_EQ(sketch("a[?]", postgres), "a[<>]");
}

}  // namespace
}  // namespace once
