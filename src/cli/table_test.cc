// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/terminal.h"

namespace once::cli {
namespace {

TEST(Table, numbers_stand_to_the_right_and_text_to_the_left) {
  Table table({"name", "count"});
  table.row({"a", "1"});
  table.row({"longer", "1,234"});
  EXPECT_EQ(table.text(false, printable),
            "name    count\n"
            "a           1\n"
            "longer  1,234\n");
}

TEST(Table, has_no_head_when_no_column_has_a_name_and_no_trailing_space) {
  Table table({"", "", ""});
  table.row({"a", "b"});
  EXPECT_EQ(table.text(false, printable), "a  b\n");
}

TEST(Table, only_color_adds_escape_sequences) {
  Table table({"x"});
  EXPECT_EQ(table.text(false, printable), "x\n");
  EXPECT_EQ(table.text(true, printable), "\033[1mx\033[0m\n");
}

TEST(Table, umlauts_take_one_column) {
  Table table({"a", "b"});
  table.row({"ü", "x"});
  table.row({"uu", "y"});
  EXPECT_EQ(table.text(false, printable), "a   b\nü   x\nuu  y\n");
}

TEST(Table, digits_are_grouped_on_both_sides_of_a_thousand) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
}

TEST(Table, cells_are_aligned_as_they_are_shown) {
  Table table({"a", "b"});
  table.row({"\x1b", "x"});
  table.row({"uu", "y"});
  EXPECT_EQ(table.text(false, printable), "a     b\n\\x1b  x\nuu    y\n");
}

}  // namespace
}  // namespace once::cli
