// SPDX-License-Identifier: Apache-2.0
#include "cli/demo/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/demo/shop.h"

namespace once::cli {
namespace {

TEST(Load, is_the_same_for_the_same_seed_and_another_for_another) {
  const DemoSettings settings{.directory = {}, .seed = 7, .messages = 200};
  const Load first(settings);
  const Load second(settings);
  ASSERT_EQ(first.orders(), second.orders());
  ASSERT_EQ(first.sends(), second.sends());
  for (std::size_t i = 0; i < first.sends().size(); ++i)
    EXPECT_EQ(first.message(i), second.message(i));
  EXPECT_NE(first.orders(), Load({.directory = {}, .seed = 8, .messages = 200}).orders());
}

TEST(Load, sends_every_order_and_the_wanted_part_of_them_twice) {
  const Load load({.directory = {}, .messages = 2000, .duplicates = 0.25});
  std::map<std::size_t, int> sends;
  for (const std::size_t order : load.sends()) ++sends[order];
  EXPECT_EQ(sends.size(), 2000u);
  const auto twice = std::count_if(sends.begin(), sends.end(),
                                   [](const auto& entry) { return entry.second == 2; });
  EXPECT_NEAR(static_cast<double>(twice), 500, 80);
  EXPECT_EQ(Load({.directory = {}, .messages = 100, .duplicates = 0}).sends().size(), 100u);
  EXPECT_EQ(Load({.directory = {}, .messages = 100, .duplicates = 1}).sends().size(), 200u);
}

TEST(Load, copy_comes_after_its_original_and_says_the_same) {
  const Load load({.directory = {}, .messages = 500, .duplicates = 0.5});
  std::map<std::size_t, Message> seen;
  std::size_t newest = 0;
  for (std::size_t i = 0; i < load.sends().size(); ++i) {
    const auto [first, fresh] = seen.emplace(load.sends()[i], load.message(i));
    EXPECT_EQ(first->second, load.message(i));
    EXPECT_EQ(fresh, i == 0 || load.sends()[i] > newest) << "originals are in order";
    newest = std::max(newest, load.sends()[i]);
  }
}

TEST(Load, order_survives_its_body) {
  const Load load({.directory = {}, .messages = 50});
  for (const Order& order : load.orders()) EXPECT_EQ(order_of(body_of(order)).value(), order);
  EXPECT_EQ(order_of("{}").error().remedy, Remedy::park);
  EXPECT_EQ(order_of("nonsense").error().remedy, Remedy::park);
}

TEST(Plan, has_as_many_kills_as_wanted_in_order_and_while_there_is_work) {
  const auto kills = plan_kills({.directory = {}, .seed = 3, .kills = 40});
  ASSERT_EQ(kills.size(), 40u);
  std::set<std::string> roles;
  for (std::size_t i = 0; i < kills.size(); ++i) {
    roles.insert(kills[i].role);
    EXPECT_GT(kills[i].at, 0);
    EXPECT_LT(kills[i].at, 1);
    EXPECT_GE(kills[i].at, kills[i == 0 ? 0 : i - 1].at);
  }
  EXPECT_EQ(roles, (std::set<std::string>{"gate", "orders", "points", "relay"}));
  EXPECT_TRUE(plan_kills({.directory = {}, .kills = 0}).empty());
  EXPECT_TRUE(plan_owner_changes({.directory = {}, .kills = 0}).empty());
  EXPECT_EQ(plan_owner_changes({.directory = {}, .kills = 1}).size(), 1u);
}

TEST(Plan, gives_the_kills_time) {
  const DemoSettings settings{.directory = {}, .messages = 10, .duplicates = 0, .kills = 100};
  EXPECT_LE(sends_per_second(settings), 10 / 15.0 + 1e-9);
}

}  // namespace
}  // namespace once::cli
