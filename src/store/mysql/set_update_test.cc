// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/set_update.h"

#include <gtest/gtest.h>

#include "store/mysql/render.h"

namespace once {
namespace {

KeyedUpdate update_of(const char* statement) {
  return keyed_update(statement, mysql_syntax).value();
}

RowTypes types_of(const std::vector<Value>& row) {
  RowTypes types(row.size());
  EXPECT_TRUE(types.take(row));
  return types;
}

TEST(SetUpdate, values_come_from_a_table) {
  const std::vector<Value> row{5, 7};
  const std::vector<std::span<const Value>> rows{row, row};
  EXPECT_EQ(set_update(update_of("UPDATE a SET b = b + ? WHERE `k`=?"), types_of(row), rows),
            "UPDATE JSON_TABLE('[[5,7],[5,7]]', '$[*]' COLUMNS (once_p0 BIGINT PATH '$[0]', "
            "once_p1 BIGINT PATH '$[1]')) AS once_v STRAIGHT_JOIN a SET  b = b + once_v.once_p0  "
            "WHERE  `k`= once_v.once_p1 ");
}

TEST(SetUpdate, a_text_is_only_what_a_column_is_set_to) {
  const KeyedUpdate plain = update_of("UPDATE a SET b = ? WHERE k = ?");
  const KeyedUpdate computed = update_of("UPDATE a SET b = b + ? WHERE k = ?");
  EXPECT_TRUE(can_be_table(plain, types_of({"x", 1})));
  EXPECT_TRUE(can_be_table(plain, types_of({Blob{"x"}, 1})));
  EXPECT_TRUE(can_be_table(computed, types_of({0.5, 1})));
  EXPECT_FALSE(can_be_table(computed, types_of({"x", 1})));
  EXPECT_FALSE(can_be_table(computed, types_of({nullptr, 1})));
  EXPECT_FALSE(can_be_table(plain, types_of({1, "x"})));
}

}  // namespace
}  // namespace once
