// SPDX-License-Identifier: Apache-2.0
#include "config/statement.h"

#include <gtest/gtest.h>

namespace once {
namespace {

using Names = std::vector<std::string>;

NamedStatement named(std::string_view statement, SqlDialect dialect = SqlDialect::postgresql) {
  return name_parameters(statement, dialect).value();
}

TEST(Statement, names_become_parameters_in_order) {
  EXPECT_EQ(
      named("UPDATE a SET p = p + :points WHERE id=:id AND p<>:points"),
      (NamedStatement{"UPDATE a SET p = p + ? WHERE id=? AND p<>?", {"points", "id", "points"}}));
}

TEST(Statement, casts_slices_and_assignments_are_left_alone) {
  EXPECT_EQ(named("SELECT :a::bigint, b::text, c[1:2], d :: int"),
            (NamedStatement{"SELECT ?::bigint, b::text, c[1:2], d :: int", {"a"}}));
  EXPECT_EQ(named("SELECT @n := :n", SqlDialect::mysql), (NamedStatement{"SELECT @n := ?", {"n"}}));
}

TEST(Statement, quoted_text_names_and_comments_are_left_alone) {
  const std::string text = "SELECT ':a', \":b\", 'it''s :c' /* :d */ -- :e";
  EXPECT_EQ(named(text), (NamedStatement{text, {}}));
  EXPECT_EQ(named("SELECT $x$ :a $x$, :b"), (NamedStatement{"SELECT $x$ :a $x$, ?", {"b"}}));
  EXPECT_EQ(named("SELECT `:a`, '\\':b', :c # :d", SqlDialect::mysql),
            (NamedStatement{"SELECT `:a`, '\\':b', ? # :d", {"c"}}));
}

TEST(Statement, one_semicolon_may_end_it_and_nothing_follows) {
  EXPECT_EQ(named("DELETE FROM a WHERE b = :b; -- done"),
            (NamedStatement{"DELETE FROM a WHERE b = ? -- done", {"b"}}));
  EXPECT_FALSE(name_parameters("DELETE FROM a; DELETE FROM b", SqlDialect::sqlite));
}

TEST(Statement, what_is_no_statement_of_a_handler_is_refused) {
  for (const char* text : {"SELECT ?", "SELECT 'a", "", "COMMIT", "DELETE FROM once_ledger"}) {
    const auto made = name_parameters(text, SqlDialect::sqlite);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().tag, "sql") << text;
  }
}

TEST(Statement, two_question_marks_are_those_of_an_operator) {
  EXPECT_EQ(named("UPDATE a SET b = :b WHERE c ?? 'd'"),
            (NamedStatement{"UPDATE a SET b = ? WHERE c ?? 'd'", {"b"}}));
}

}  // namespace
}  // namespace once
