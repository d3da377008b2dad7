// SPDX-License-Identifier: Apache-2.0
#include "model/sql_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace once {
namespace {

constexpr SqlSyntax postgres{.dollar_quotes = true};
constexpr SqlSyntax mysql{.backticks = true, .backslashes = true, .hash_comments = true};

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
  EXPECT_EQ(sketch("'it''s ?' ?", postgres), "[4][5] <>");
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

TEST(SqlText, a_handler_may_not_end_the_transaction_or_write_the_books) {
  for (const char* text :
       {"COMMIT", "  commit", "-- x\nROLLBACK", "/* a */ Savepoint a", "END", "COPY t FROM STDIN",
        "DELETE FROM once_ledger", "UPDATE \"once_position\" SET fence = 0", "", " -- nothing",
        "WITH a AS (DELETE FROM ONCE_OUTBOX RETURNING 1) SELECT * FROM a"})
    EXPECT_EQ(check_handler_statement(text, postgres).error().tag, "sql") << text;
  for (const char* text :
       {"SELECT * FROM once_ledger_readable", "UPDATE account SET note = 'once_ledger'",
        "INSERT INTO commit_log VALUES ('COMMIT')", "UPDATE once_counter SET last = 1"})
    EXPECT_TRUE(check_handler_statement(text, postgres)) << text;
}

TEST(SqlText, quoted_names_of_books_are_seen_in_every_dialect) {
  EXPECT_FALSE(check_handler_statement("DELETE FROM `once_ledger`", mysql));
  EXPECT_TRUE(check_handler_statement("DELETE FROM `twice_ledger`", mysql));
  EXPECT_FALSE(check_handler_statement("DELETE FROM \"once_ledger\"", postgres));
}

}  // namespace
}  // namespace once
