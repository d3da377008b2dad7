// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "store/memory/memory.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

class KeyValueRowTest : public ::testing::Test {
 protected:
  std::unique_ptr<Transaction> begin() { return store_.begin("shop").value(); }

  MemoryStore store_{system_clock()};
};

TEST_F(KeyValueRowTest, values_of_every_kind_come_back_as_they_were) {
  const auto transaction = begin();
  const std::string bytes("\0|\\e\xff", 5);
  const auto row = guarded_row(*transaction, "t", {{"k", 1}}).value();
  ASSERT_EQ(row->insert({{"a", std::numeric_limits<std::int64_t>::min()},
                         {"b", 0.1},
                         {"c", bytes},
                         {"d", Blob{bytes}},
                         {"e", nullptr},
                         {"f", ""}}),
            true);
  const std::array<std::string_view, 8> columns{"k", "a", "b", "c", "d", "e", "f", "none"};
  EXPECT_EQ(row->read(columns, Freshness::snapshot).value(),
            (Row{std::int64_t{1}, std::numeric_limits<std::int64_t>::min(), 0.1, bytes, bytes,
                 nullptr, "", nullptr}));
}

TEST_F(KeyValueRowTest, H14_keys_and_tables_that_differ_are_different_rows) {
  const auto transaction = begin();
  const auto insert = [&](std::string_view table, Columns key) {
    return unique(*transaction, table, key).value();
  };
  EXPECT_EQ(insert("t", {{"a", "1"}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("t", {{"a", 1}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("t", {{"a", "s1"}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("t", {{"a", "1|s2"}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("t", {{"a", "1"}, {"b", "2"}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("u", {{"a", "1"}}), UniqueAnswer::inserted);
  EXPECT_EQ(insert("t", {{"a", "1"}}), UniqueAnswer::present);
}

TEST_F(KeyValueRowTest, conditions_compare_as_a_database_does) {
  const auto transaction = begin();
  const auto row = guarded_row(*transaction, "t", {{"k", 1}}).value();
  ASSERT_EQ(row->insert({{"n", 5}, {"nothing", nullptr}, {"s", "b"}}), true);
  using Kind = Condition::Kind;
  const auto holds = [&](std::string_view column, Kind kind, std::vector<Value> values) {
    const Condition condition{column, kind, std::move(values)};
    return row->update(std::span(&condition, 1), {{"seen", 1}}).value();
  };
  EXPECT_TRUE(holds("n", Kind::equals, {5}));
  EXPECT_FALSE(holds("n", Kind::equals, {"5"}));
  EXPECT_TRUE(holds("n", Kind::at_most, {5}));
  EXPECT_FALSE(holds("n", Kind::at_most, {4}));
  EXPECT_TRUE(holds("n", Kind::above, {4}));
  EXPECT_FALSE(holds("n", Kind::above, {5}));
  EXPECT_TRUE(holds("s", Kind::one_of, {"a", "b"}));
  EXPECT_FALSE(holds("s", Kind::one_of, {"a", "c"}));
  EXPECT_FALSE(holds("nothing", Kind::equals, {nullptr}));
  EXPECT_FALSE(holds("missing", Kind::at_most, {5}));
}

TEST_F(KeyValueRowTest, of_two_transactions_that_lock_a_row_one_commits) {
  {
    const auto setup = begin();
    ASSERT_EQ(unique(*setup, "t", {{"k", 1}}), UniqueAnswer::inserted);
    ASSERT_TRUE(setup->commit());
  }
  const auto first = begin();
  const auto second = begin();
  EXPECT_EQ(row_lock(*first, "t", "k", {1}, {"k"}).value().answer, LockAnswer::locked);
  EXPECT_EQ(row_lock(*second, "t", "k", {1}, {"k"}).value().answer, LockAnswer::locked);
  EXPECT_TRUE(second->commit());
  const Status late = first->commit();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().remedy, Remedy::retry);
}

TEST_F(KeyValueRowTest, what_no_strategy_has_written_is_not_read_as_a_row) {
  const auto transaction = begin();
  ASSERT_TRUE(transaction->key_value()->put("t|i1", "a|x"));
  const auto row = guarded_row(*transaction, "t", {{"k", 1}}).value();
  EXPECT_EQ(row->read(std::array<std::string_view, 1>{"a"}, Freshness::snapshot).error().tag,
            "corrupt");
  ASSERT_TRUE(transaction->key_value()->put("t|i1", "a|i1|b"));
  EXPECT_EQ(row->read(std::array<std::string_view, 1>{"a"}, Freshness::snapshot).error().tag,
            "corrupt");
}

}  // namespace
}  // namespace once
