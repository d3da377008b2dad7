// SPDX-License-Identifier: Apache-2.0
#include "model/own_tables.h"

#include <gtest/gtest.h>

#include <array>

namespace once {
namespace {

TEST(OwnTables, every_table_that_a_script_makes_is_named_once) {
  constexpr std::array<std::string_view, 3> scripts{
      "CREATE TABLE once_a (n INT); CREATE TABLE once_b(n INT); DROP TABLE once_a;",
      "CREATE TABLE IF NOT EXISTS once_c (n INT) ENGINE = InnoDB", "CREATE TABLE once_a (m INT)"};
  const auto names = tables_made_by(scripts);
  EXPECT_EQ(names, (std::vector<std::string>{"once_a", "once_b", "once_c"}));
  EXPECT_EQ(quoted_names(names), "'once_a', 'once_b', 'once_c'");
}

}  // namespace
}  // namespace once
