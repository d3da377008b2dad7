// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_fixture.h"

// What a store knows of itself, of the topics that are read and of the progress in them.

namespace once::testing {

inline PartitionRecord partition_of(Store& store, std::string_view name,
                                    std::string_view scope = "shop") {
  const auto known = store.records()->describe(scope);
  EXPECT_TRUE(known) << known.error().text;
  for (const PartitionRecord& partition : known->partitions)
    if (partition.partition == name) return partition;
  return {};
}

TEST_P(StoreSuite, a_store_keeps_its_identity_and_no_other_store_has_it) {
  const std::string identity = store().traits().identity;
  EXPECT_GE(identity.size(), 16u);
  reopen();
  EXPECT_EQ(store().traits().identity, identity);
  EXPECT_NE(GetParam().make()->store().traits().identity, identity);
}

TEST_P(StoreSuite, a_position_knows_its_topic_and_is_not_given_to_another) {
  const std::string first("topic\0 1 \xff", 10);
  Position position = store().take("shop", "p0", first).value();
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", position, 5, {.witness = {4, 77}}));
    ASSERT_TRUE(transaction->commit());
  }
  reopen();
  const auto refused = store().take("shop", "p0", "topic 2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "gone");
  EXPECT_EQ(refused.error().remedy, Remedy::stop);
  EXPECT_NE(refused.error().text.find("topic 2"), std::string::npos);
  position.offset = 5;
  EXPECT_EQ(store().position("shop", "p0").value(), position);
  EXPECT_EQ(partition_of(store(), "p0").source_identity, first);
  EXPECT_EQ(records().operations("shop", 0, 10).value().size(), 1u);
  {
    auto transaction = begin();  // the owner still is one
    ASSERT_TRUE(transaction->advance("p0", position, 6));
    ASSERT_TRUE(transaction->commit());
  }
  // Unknown is not other, and does not make the store forget what it knows.
  EXPECT_EQ(store().take("shop", "p0").value().offset, 6);
  EXPECT_EQ(store().take("shop", "p0", first).value().offset, 6);
  EXPECT_EQ(store().take("shop", "p0", "topic 2").error().tag, "gone");
  EXPECT_TRUE(store().take("shop", "p1", "topic 2"));
  EXPECT_TRUE(store().take("other", "p0", "topic 2"));
}

TEST_P(StoreSuite, a_position_learns_its_topic_later_and_long_identities_are_refused) {
  ASSERT_TRUE(store().take("shop", "p0"));
  EXPECT_EQ(partition_of(store(), "p0").source_identity, "");
  EXPECT_EQ(store().take("shop", "p0", std::string(256, 'x')).error().tag, "config");
  const std::string longest(255, 'x');
  EXPECT_EQ(store().take("shop", "p0", longest).value().offset, -1);
  reopen();
  EXPECT_EQ(partition_of(store(), "p0").source_identity, longest);
}

TEST_P(StoreSuite, the_witness_is_the_last_one_that_was_told) {
  Position position = store().take("shop", "p0").value();
  EXPECT_EQ(position.witness, Witness{});
  const Witness largest{41, ~std::uint64_t{0}};
  const auto advance = [&](std::int64_t to, const Witness& witness) {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", position, to, {.witness = witness}));
    ASSERT_TRUE(transaction->commit());
    position.offset = to;
  };
  advance(42, largest);
  EXPECT_EQ(store().position("shop", "p0").value().witness, largest);
  advance(43, {});
  reopen();
  EXPECT_EQ(store().position("shop", "p0").value().witness, largest);
  position = store().take("shop", "p0").value();
  EXPECT_EQ(position.witness, largest);
  advance(50, {49, 1});
  EXPECT_EQ(store().take("shop", "p0").value().witness, (Witness{49, 1}));
}

TEST_P(StoreSuite, progress_is_recorded_with_the_position) {
  const Position start = store().take("shop", "p0").value();
  const auto record = [&](std::int64_t from, std::int64_t to, const Progress& progress) {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", {from, start.fence}, to, progress));
    ASSERT_TRUE(transaction->commit());
  };
  const auto now = [&] { return records().describe("shop").value().now_ms; };
  EXPECT_EQ(partition_of(store(), "p0").settled_ms, -1);
  EXPECT_EQ(partition_of(store(), "p0").drained_ms, -1);
  record(-1, 3, {.settled_ms = birth_ms, .waiting_ms = birth_ms - 5});
  PartitionRecord known = partition_of(store(), "p0");
  EXPECT_EQ(known.settled_ms, birth_ms);
  EXPECT_EQ(known.waiting_ms, birth_ms - 5);
  EXPECT_EQ(known.drained_ms, -1);
  record(3, 3, {.settled_ms = birth_ms - 1, .waiting_ms = -1, .drained = true});  // it stays there
  reopen();
  known = partition_of(store(), "p0");
  EXPECT_EQ(known.position, (Position{3, start.fence}));
  EXPECT_EQ(known.settled_ms, birth_ms);
  EXPECT_EQ(known.waiting_ms, -1);
  EXPECT_GT(known.drained_ms, now() - 60'000);
  EXPECT_LE(known.drained_ms, now());
  const std::int64_t drained_ms = known.drained_ms;
  record(3, 4, {.settled_ms = birth_ms + 1, .waiting_ms = 7});
  EXPECT_EQ(partition_of(store(), "p0").drained_ms, drained_ms);
  EXPECT_EQ(partition_of(store(), "p0").settled_ms, birth_ms + 1);
  EXPECT_EQ(partition_of(store(), "p0").waiting_ms, 7);
  under_test_->jump_clock(day_ms);  // times are those of the store's clock
  record(4, 5, {.drained = true});
  EXPECT_GE(partition_of(store(), "p0").drained_ms, drained_ms + day_ms);
  EXPECT_LE(partition_of(store(), "p0").drained_ms, now());
}

TEST_P(StoreSuite, two_advances_of_one_transaction_record_the_progress_of_both) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->advance(
      "p0", {}, 5, {.settled_ms = 9, .waiting_ms = 3, .drained = true, .witness = {4, 1}}));
  ASSERT_TRUE(transaction->advance("p0", {5, 0}, 8, {.settled_ms = 7, .waiting_ms = 5}));
  ASSERT_TRUE(transaction->commit());
  const PartitionRecord known = partition_of(store(), "p0");
  EXPECT_EQ(known.position, (Position{8, 0}));
  EXPECT_EQ(known.position.witness, (Witness{4, 1}));
  EXPECT_EQ(known.settled_ms, 9);
  EXPECT_EQ(known.waiting_ms, 5);
  EXPECT_GT(known.drained_ms, 0);
}

TEST_P(StoreSuite, progress_of_a_fenced_or_abandoned_transaction_is_not_recorded) {
  const Position stale = store().take("shop", "p0").value();
  const Position owner = store().take("shop", "p0").value();
  {
    auto transaction = begin();
    const Status moved = transaction->advance("p0", stale, 5, {.settled_ms = 9, .drained = true});
    EXPECT_TRUE(!moved || !transaction->commit());
  }
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", owner, 5, {.settled_ms = 9, .drained = true}));
  }
  const PartitionRecord known = partition_of(store(), "p0");
  EXPECT_EQ(known.position, owner);
  EXPECT_EQ(known.settled_ms, -1);
  EXPECT_EQ(known.drained_ms, -1);
}

TEST_P(StoreSuite, a_scope_is_described_with_all_its_partitions_by_name) {
  const auto unknown = records().describe("nobody").value();
  EXPECT_EQ(unknown.horizon_ms, 0);
  EXPECT_GT(unknown.now_ms, birth_ms);
  EXPECT_TRUE(unknown.partitions.empty());
  ASSERT_TRUE(store().take("shop", "p10", "topic"));
  ASSERT_TRUE(store().take("shop", "P1"));
  ASSERT_TRUE(store().take("other", "p3"));
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p2", {}, 9, {.settled_ms = 8, .witness = {8, 2}}));
    ASSERT_TRUE(transaction->commit());
  }
  forget_all(500);
  reopen();
  const ScopeRecord known = records().describe("shop").value();
  EXPECT_EQ(known.horizon_ms, 500);
  EXPECT_GT(known.now_ms, birth_ms);
  std::vector<std::string> names;
  for (const PartitionRecord& partition : known.partitions) names.push_back(partition.partition);
  ASSERT_EQ(names, (std::vector<std::string>{"P1", "p10", "p2"}));
  EXPECT_EQ(known.partitions[1].position.offset, -1);
  EXPECT_GT(known.partitions[1].position.fence, 0u);
  EXPECT_EQ(known.partitions[1].source_identity, "topic");
  EXPECT_EQ(known.partitions[2].position, (Position{9, 0}));
  EXPECT_EQ(known.partitions[2].position.witness, (Witness{8, 2}));
  EXPECT_EQ(known.partitions[2].settled_ms, 8);
  EXPECT_TRUE(records().describe("other").value().partitions.at(0).source_identity.empty());
  const ScopeRecord horizon_only = records().describe("nobody").value();
  EXPECT_TRUE(horizon_only.partitions.empty());
}

}  // namespace once::testing
