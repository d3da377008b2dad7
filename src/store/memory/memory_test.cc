// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory.h"

#include <gtest/gtest.h>
#include <once/open.h>

namespace once {
namespace {

class Memory : public ::testing::Test {
 protected:
  static Entry entry(std::string_view id, std::int64_t born_ms = 100) {
    return {id, {}, born_ms, "p0", 0};
  }
  std::unique_ptr<Transaction> begin() { return store_.begin("shop").value(); }
  std::optional<std::string> value(std::string_view key) {
    return begin()->key_value()->get(key).value();
  }

  MemoryStore store_{system_clock()};
};

TEST_F(Memory, promises_nothing_beyond_the_process) {
  const auto store = open_memory_store().value();
  EXPECT_EQ(store->traits().name, "memory:");
  EXPECT_EQ(store->traits().durability, StoreTraits::Durability::none);
  EXPECT_TRUE(store->traits().key_value);
  EXPECT_FALSE(store->traits().sql);
}

TEST_F(Memory, the_faster_of_two_open_transactions_wins_an_id) {
  auto slow = begin();
  auto fast = begin();
  EXPECT_EQ(slow->admit(std::vector{entry("a")}).value()[0].kind, Verdict::Kind::fresh);
  EXPECT_EQ(fast->admit(std::vector{entry("a")}).value()[0].kind, Verdict::Kind::fresh);
  EXPECT_TRUE(fast->commit());
  const auto lost = slow->commit();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().tag, "conflict");
  EXPECT_EQ(lost.error().remedy, Remedy::retry);
  EXPECT_EQ(slow->commit().error().tag, "conflict");
}

// The rival recorded the id, and it was forgotten again before we came to commit.
TEST_F(Memory, an_id_that_was_recorded_and_forgotten_in_between_is_a_conflict) {
  auto slow = begin();
  ASSERT_EQ(slow->admit(std::vector{entry("a")}).value()[0].kind, Verdict::Kind::fresh);
  auto fast = begin();
  ASSERT_TRUE(fast->admit(std::vector{entry("a")}));
  ASSERT_TRUE(fast->commit());
  ASSERT_EQ(store_.forget("shop", 101, 10).value().rows, 1u);
  EXPECT_EQ(slow->commit().error().tag, "conflict");
  EXPECT_EQ(begin()->admit(std::vector{entry("a")}).value()[0].kind, Verdict::Kind::too_old);
}

TEST_F(Memory, an_id_freed_by_no_effect_is_checked_like_the_others) {
  auto slow = begin();
  ASSERT_TRUE(slow->admit(std::vector{entry("a")}));
  Delivery delivery;
  delivery.id = "a";
  delivery.partition = "p0";
  ASSERT_TRUE(slow->settle(delivery, no_effect()));
  auto fast = begin();
  ASSERT_TRUE(fast->admit(std::vector{entry("a")}));
  ASSERT_TRUE(fast->commit());
  EXPECT_EQ(slow->commit().error().tag, "conflict");
}

TEST_F(Memory, a_take_fences_a_transaction_that_has_already_advanced) {
  const Position first = store_.take("shop", "p0").value();
  auto transaction = begin();
  ASSERT_TRUE(transaction->advance("p0", first, 5));
  const Position second = store_.take("shop", "p0").value();
  EXPECT_EQ(transaction->commit().error().tag, "fenced");
  EXPECT_EQ(store_.position("shop", "p0").value(), second);
}

TEST_F(Memory, the_faster_of_two_that_advance_fences_the_other) {
  auto slow = begin();
  auto fast = begin();
  ASSERT_TRUE(slow->advance("p0", {}, 1));
  ASSERT_TRUE(fast->advance("p0", {}, 1));
  EXPECT_TRUE(fast->commit());
  EXPECT_EQ(slow->commit().error().tag, "fenced");
}

TEST_F(Memory, a_value_that_changed_after_it_was_read_is_a_conflict) {
  auto slow = begin();
  EXPECT_FALSE(slow->key_value()->get("stock").value());
  ASSERT_TRUE(slow->key_value()->put("stock", "1"));
  auto fast = begin();
  ASSERT_TRUE(fast->key_value()->put("stock", "2"));
  ASSERT_TRUE(fast->commit());
  EXPECT_EQ(slow->commit().error().tag, "conflict");
  EXPECT_EQ(value("stock"), "2");
}

TEST_F(Memory, a_transaction_sees_its_own_writes_and_nobody_elses) {
  auto transaction = begin();
  KeyValueTransaction& values = *transaction->key_value();
  ASSERT_TRUE(values.put("a", "1"));
  EXPECT_EQ(values.get("a").value(), "1");
  ASSERT_TRUE(values.erase("a"));
  EXPECT_FALSE(values.get("a").value());
  ASSERT_TRUE(values.put("a", ""));
  EXPECT_FALSE(value("a"));
  ASSERT_TRUE(transaction->commit());
  EXPECT_EQ(value("a"), "");
}

TEST_F(Memory, a_crash_kills_what_is_open_and_keeps_what_is_committed) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->key_value()->put("a", "1"));
  ASSERT_TRUE(transaction->commit());
  transaction = begin();
  ASSERT_TRUE(transaction->key_value()->put("a", "2"));
  store_.crash();
  EXPECT_EQ(transaction->commit().error().remedy, Remedy::recheck);
  EXPECT_FALSE(transaction->key_value()->put("a", "3"));
  EXPECT_EQ(value("a"), "1");
}

TEST_F(Memory, a_snapshot_can_be_gone_back_to) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
  ASSERT_TRUE(transaction->commit());
  const MemoryState snapshot = store_.snapshot();
  transaction = begin();
  ASSERT_TRUE(transaction->admit(std::vector{entry("b")}));
  ASSERT_TRUE(transaction->commit());
  store_.restore(snapshot);
  EXPECT_EQ(begin()->admit(std::vector{entry("a")}).value()[0].kind, Verdict::Kind::duplicate);
  EXPECT_EQ(begin()->admit(std::vector{entry("b")}).value()[0].kind, Verdict::Kind::fresh);
}

TEST_F(Memory, a_refused_commit_leaves_nothing_and_says_so) {
  store_.set_commit_fault([] { return MemoryStore::CommitFault::refused; });
  auto transaction = begin();
  ASSERT_TRUE(transaction->key_value()->put("a", "1"));
  EXPECT_EQ(transaction->commit().error().remedy, Remedy::retry);
  store_.set_commit_fault({});
  EXPECT_FALSE(value("a"));
}

}  // namespace
}  // namespace once
