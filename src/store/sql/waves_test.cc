// SPDX-License-Identifier: Apache-2.0
#include "store/sql/waves.h"

#include <gtest/gtest.h>

#include <map>

namespace once {
namespace {

using Places = std::vector<std::size_t>;

std::optional<Waves> waves_of(const std::vector<std::vector<Value>>& rows, KeyKind kind) {
  std::vector<std::span<const Value>> views(rows.begin(), rows.end());
  return cut_into_waves(views, 1, kind);
}

TEST(Waves, every_row_is_in_one_of_them_and_those_of_a_key_keep_their_order) {
  std::vector<std::vector<Value>> rows;
  for (std::size_t i = 0; i < 500; ++i) rows.push_back({0, i * i % 47});
  const auto waves = waves_of(rows, KeyKind::number);
  ASSERT_TRUE(waves);
  EXPECT_FALSE(waves->together.empty());
  EXPECT_FALSE(waves->rest.empty());
  Places order;
  for (const Places& wave : waves->together) {
    EXPECT_GE(wave.size(), equal_rows_min);
    for (std::size_t i = 1; i < wave.size(); ++i)
      EXPECT_LT(wave[i - 1] * wave[i - 1] % 47, wave[i] * wave[i] % 47);
    order.insert(order.end(), wave.begin(), wave.end());
  }
  order.insert(order.end(), waves->rest.begin(), waves->rest.end());
  ASSERT_EQ(order.size(), 500u);
  std::map<std::size_t, Places> of_key;
  for (const std::size_t place : order) of_key[place * place % 47].push_back(place);
  for (const auto& [key, places] : of_key) {
    Places expected;
    for (std::size_t i = 0; i < 500; ++i)
      if (i * i % 47 == key) expected.push_back(i);
    EXPECT_EQ(places, expected) << key;
  }
}

TEST(Waves, of_fewer_than_sixteen_are_the_rest) {
  std::vector<std::vector<Value>> rows;
  for (std::size_t i = 0; i < 15; ++i) rows.push_back({0, i});
  EXPECT_TRUE(waves_of(rows, KeyKind::number)->together.empty());
  EXPECT_EQ(waves_of(rows, KeyKind::number)->rest.size(), 15u);
  rows.push_back({0, 15});
  EXPECT_EQ(waves_of(rows, KeyKind::number)->together.size(), 1u);
  EXPECT_TRUE(waves_of(rows, KeyKind::number)->rest.empty());
}

TEST(Waves, keys_of_another_kind_cannot_be_compared) {
  EXPECT_TRUE(waves_of({{0, 1}, {0, 2}}, KeyKind::number));
  EXPECT_FALSE(waves_of({{0, 1}, {0, nullptr}}, KeyKind::number));
  EXPECT_FALSE(waves_of({{0, 1}, {0, "1"}}, KeyKind::number));
  EXPECT_FALSE(waves_of({{0, 1}, {0, 1.0}}, KeyKind::number));
  EXPECT_FALSE(waves_of({{0, "a"}, {0, Blob{"a"}}}, KeyKind::text));
  EXPECT_TRUE(waves_of({{0, "a"}, {0, "A"}}, KeyKind::text));
}

}  // namespace
}  // namespace once
