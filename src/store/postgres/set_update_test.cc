// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/set_update.h"

#include <gtest/gtest.h>

#include "store/postgres/statement_text.h"

namespace once {
namespace {

const ParameterType integer{"integer"};
const ParameterType bigint{.name = "bigint", .is_bigint = true};
const ParameterType bytes{.name = "bytea", .is_bytes = true};

TEST(SetUpdate, values_come_from_arrays_of_their_types) {
  const auto update = keyed_update("UPDATE a SET b = b + ? WHERE k = ?", postgres_syntax).value();
  EXPECT_EQ(set_update(update, std::vector{integer, bigint}),
            "UPDATE a SET  b = b + once_v.once_p1  FROM unnest($1::integer[], $2::bigint[]) "
            "WITH ORDINALITY AS once_v (once_p1, once_p2, once_n) WHERE  k = once_v.once_p2  "
            "RETURNING once_v.once_n");
}

TEST(SetUpdate, values_cannot_end_the_element_that_they_stand_in) {
  EXPECT_EQ(array_literal({}), "{}");
  EXPECT_EQ(array_literal({1, -2, 0.5, nullptr}), "{1,-2,0.5,NULL}");
  EXPECT_EQ(array_literal({"", "NULL", "a\"b\\c,}"}), R"({"","NULL","a\"b\\c,}"})");
  EXPECT_EQ(array_literal({Blob{std::string_view("\0\xff", 2)}}), R"({"\\x00ff"})");
}

TEST(SetUpdate, the_key_that_tells_most_rows_apart_is_taken) {
  std::vector<std::vector<Value>> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({i % 20, i});
  const std::vector<std::span<const Value>> views(rows.begin(), rows.end());
  const std::vector<ParameterType> types{integer, integer};
  const std::vector<SetKey> both{{0, KeyKind::number}, {1, KeyKind::number}};
  EXPECT_EQ(waves_of(views, types, both)->together.size(), 1u);
  EXPECT_EQ(waves_of(views, types, std::span(both).first(1))->together.size(), 5u);
  EXPECT_FALSE(waves_of(views, types, {}));
}

TEST(SetUpdate, bytes_travel_in_arrays_of_bytes_only) {
  std::vector<std::vector<Value>> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({Blob{"x"}, i});
  const std::vector<std::span<const Value>> views(rows.begin(), rows.end());
  const std::vector<SetKey> key{{1, KeyKind::number}};
  EXPECT_TRUE(waves_of(views, std::vector{bytes, integer}, key));
  EXPECT_FALSE(waves_of(views, std::vector{integer, integer}, key));
}

}  // namespace
}  // namespace once
