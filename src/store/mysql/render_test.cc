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
  EXPECT_EQ(rendered("a = ?", {Blob{std::string_view("\0\xff", 2)}}), "a = _binary x'00ff'");
  EXPECT_EQ(rendered("a = ? AND b = '?'", {""}), "a = _utf8mb4 x'' AND b = '?'");
  EXPECT_EQ(rendered("a ?? b", {}), "a ? b");
  EXPECT_EQ(rendered("a = ?", {0.1}), "a = 1e-01");
  EXPECT_EQ(rendered("a = ?", {1.0 / 3}), "a = 3.333333333333333e-01");
}

TEST(Render, decimals_are_exact_numbers) {
  const auto decimal = [](std::string_view digits) { return rendered("?", {Decimal{digits}}); };
  for (const char* digits : {"0", "-7", "1234567890123456789012345678.90", "0.03", "-0.0"})
    EXPECT_EQ(decimal(digits), digits);
  EXPECT_EQ(decimal("3e8"), "300000000");
  EXPECT_EQ(decimal("-1.25E+1"), "-12.5");
  EXPECT_EQ(decimal("1.2500e2"), "125.00");
  EXPECT_EQ(decimal("1e-5"), "0.00001");
  EXPECT_EQ(decimal("12.5e-3"), "0.0125");
  EXPECT_EQ(decimal(std::string(65, '9')), std::string(65, '9'));
  for (const std::string& digits :
       {std::string(66, '9'), std::string("1e65"), std::string("1e-31"), std::string("1e2000"),
        "0." + std::string(31, '1'), std::string(""), std::string("-"), std::string("1."),
        std::string(".5"), std::string("1e"), std::string("--1"), std::string("1 OR 1"),
        std::string("1.2.3"), std::string("0x10"), std::string("1e5e5"), std::string("+1")})
    EXPECT_EQ(decimal(digits), "refused: constraint") << digits;
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
