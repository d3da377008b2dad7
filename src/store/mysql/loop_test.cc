// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/loop.h"

#include <gtest/gtest.h>

namespace once {
namespace {

std::string block_of(const std::vector<std::vector<Value>>& rows) {
  RowTypes types(rows.front().size());
  std::vector<std::span<const Value>> views;
  for (const auto& row : rows) {
    EXPECT_TRUE(types.take(row));
    views.emplace_back(row);
  }
  return loop_block("UPDATE t SET a = ?", types, views);
}

std::string json_in(const std::string& block) {
  const std::size_t begin = block.find("JSON_TABLE('") + 12;
  return block.substr(begin, block.find('\'', begin) - begin);
}

TEST(Loop, values_cannot_end_what_they_stand_in) {
  EXPECT_EQ(json_in(block_of({{1, "'\"]"}, {-2, nullptr}})), R"([[1,"27225d"],[-2,null]])");
  EXPECT_EQ(json_in(block_of({{0.5, Blob{std::string_view("\0", 1)}}})), R"([[5e-01,"00"]])");
  EXPECT_EQ(block_of({{1}}).find("UPDATE"), std::string::npos) << "the statement is in digits, too";
}

TEST(Loop, every_type_comes_back_as_what_it_was) {
  const std::string block = block_of({{1, 0.5, "a", Blob{"b"}, nullptr}});
  EXPECT_NE(
      block.find("once_p0 BIGINT PATH '$[0]', once_p1 DOUBLE PATH '$[1]', once_p2 VARCHAR(2)"),
      std::string::npos);
  EXPECT_NE(block.find("USING r.once_p0, r.once_p1, CONVERT(UNHEX(r.once_p2) USING utf8mb4), "
                       "UNHEX(r.once_p3), "),
            std::string::npos);
}

TEST(Loop, long_texts_and_many_columns_fit_into_a_row) {
  const std::string text(300, 'x');
  EXPECT_NE(block_of({{text}}).find("once_p0 LONGTEXT"), std::string::npos);
  const std::string shorter(200, 'x');
  EXPECT_NE(block_of({{shorter}}).find("once_p0 VARCHAR(400)"), std::string::npos);
  EXPECT_NE(block_of({std::vector<Value>(100, Value(shorter))}).find("once_p0 LONGTEXT"),
            std::string::npos);
}

TEST(Loop, an_answer_has_a_number_for_each_row) {
  EXPECT_EQ(counts_of_loop("1 0 -1 ", 3), (std::vector<std::int64_t>{1, 0, -1}));
  EXPECT_EQ(counts_of_loop("1 0 ", 3), std::nullopt);
  EXPECT_EQ(counts_of_loop("1 x ", 2), std::nullopt);
  EXPECT_EQ(counts_of_loop("12", 1), std::nullopt);
  EXPECT_EQ(counts_of_loop("", 0), std::vector<std::int64_t>{});
}

}  // namespace
}  // namespace once
