// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/render.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace once {
namespace {

std::string rendered(std::string_view statement, const std::vector<Value>& values) {
  const auto made = render(statement, values);
  return made ? *made : "refused: " + made.error().tag;
}

TEST(Render, values_cannot_end_what_they_stand_in) {
  EXPECT_EQ(rendered("INSERT INTO t VALUES (?, ?)", {-7, nullptr}),
            "INSERT INTO t VALUES (-7, NULL)");
  EXPECT_EQ(rendered("a = ?", {"'; DROP TABLE t; --"}),
            "a = _utf8mb4 x'273b2044524f50205441424c4520743b202d2d'");
  EXPECT_EQ(rendered("a = ?", {Blob{std::string_view("\0\xff", 2)}}), "a = x'00ff'");
  EXPECT_EQ(rendered("a = ? AND b = '?'", {""}), "a = _utf8mb4 x'' AND b = '?'");
  EXPECT_EQ(rendered("a ?? b", {}), "a ? b");
  EXPECT_EQ(rendered("a = ?", {0.1}), "a = 1e-01");
  EXPECT_EQ(rendered("a = ?", {1.0 / 3}), "a = 3.333333333333333e-01");
}

TEST(Render, what_would_run_into_the_next_statement_is_refused) {
  for (const char* statement :
       {"SELECT 1; DELETE FROM t", "SELECT 'open", "SELECT `open", "SELECT \"open",
        "SELECT /* open", "SELECT /*! 1 */", "SELECT /*M! 1 */", "SELECT '\\'"})
    EXPECT_EQ(rendered(statement, {}), "refused: sql") << statement;
  EXPECT_EQ(rendered("SELECT 1 -- to the end; of the line", {}),
            "SELECT 1 -- to the end; of the line");
}

TEST(Render, there_is_a_value_for_each_parameter) {
  EXPECT_EQ(rendered("a = ?", {}), "refused: sql");
  EXPECT_EQ(rendered("a = ?", {1, 2}), "refused: sql");
  EXPECT_EQ(rendered("a = ?", {std::numeric_limits<double>::infinity()}), "refused: sql");
}

}  // namespace
}  // namespace once
