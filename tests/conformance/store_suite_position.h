// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_fixture.h"

namespace once::testing {

TEST_P(StoreSuite, a_partition_that_was_never_handled_has_no_position) {
  EXPECT_EQ(store().position("shop", "p0").value(), Position{});
  EXPECT_EQ(store().position("shop", "p0").value().offset, -1);
}

TEST_P(StoreSuite, advance_moves_a_position_from_where_it_is) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->advance("p0", {}, 10));
  ASSERT_TRUE(transaction->commit());
  transaction = begin();
  ASSERT_TRUE(transaction->advance("p0", {10, 0}, 20));
  ASSERT_TRUE(transaction->advance("p0", {20, 0}, 25));
  ASSERT_TRUE(transaction->advance("p0", {25, 0}, 25));
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  EXPECT_EQ(store().position("shop", "p0").value(), (Position{25, 0}));
  reopen();
  EXPECT_EQ(store().position("shop", "p0").value(), (Position{25, 0}));
}

TEST_P(StoreSuite, advance_from_anywhere_else_is_fenced_and_commits_nothing) {
  const Position owner = store().take("shop", "p0").value();
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", owner, 10));
    ASSERT_TRUE(transaction->commit());
  }
  for (const Position& wrong : {Position{}, Position{9, owner.fence}, Position{11, owner.fence},
                                Position{10, owner.fence + 1}, Position{10, 0}}) {
    auto transaction = begin();
    ASSERT_TRUE(add_effect(*transaction, "never"));
    auto status = transaction->advance("p0", wrong, 30);
    if (status) status = transaction->commit();
    ASSERT_FALSE(status) << wrong.offset << " " << wrong.fence;
    EXPECT_EQ(status.error().tag, "fenced");
    EXPECT_EQ(status.error().remedy, Remedy::stop);
    EXPECT_EQ(transaction->commit().error().tag, "fenced");
  }
  EXPECT_EQ(store().position("shop", "p0").value(), (Position{10, owner.fence}));
  EXPECT_TRUE(effects().empty());
}

TEST_P(StoreSuite, a_position_never_moves_back) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->advance("p0", {}, 10));
  const auto back = transaction->advance("p0", {10, 0}, 9);
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().tag, "backwards");
}

TEST_P(StoreSuite, every_take_has_a_larger_fence_also_after_a_restart) {
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const Position taken = store().take("shop", "p0").value();
    EXPECT_GT(taken.fence, last);
    EXPECT_EQ(taken.offset, -1);
    EXPECT_EQ(store().position("shop", "p0").value(), taken);
    last = taken.fence;
    if (i % 2 == 1) reopen();
  }
}

// A store that was restored from a backup counts from an older fence. What is given after that must
// not be what was given before: only the clock knows how much time has passed.
TEST_P(StoreSuite, a_fence_is_at_least_the_clock_and_grows_even_if_the_clock_goes_back) {
  const auto now = [&] {
    return static_cast<std::uint64_t>(records().describe("shop").value().now_ms);
  };
  const std::uint64_t start = now();
  const std::uint64_t first = store().take("shop", "p0").value().fence;
  EXPECT_GE(first, start);
  under_test_->jump_clock(day_ms);
  const std::uint64_t second = store().take("shop", "p0").value().fence;
  EXPECT_GE(second, start + day_ms);
  ASSERT_TRUE(store().repairs()->correct("shop", SetPosition{"p1", 5}, "a copy begins here"));
  EXPECT_GE(store().position("shop", "p1").value().fence, start + day_ms);
  ASSERT_TRUE(store().repairs()->correct(relay_scope, RestartDestination{"next"}, "made anew"));
  EXPECT_GE(store().position(relay_scope, "next").value().fence, start + day_ms);
  under_test_->jump_clock(-2 * day_ms);
  reopen();
  EXPECT_GT(store().take("shop", "p0").value().fence, second);
}

TEST_P(StoreSuite, H20_an_earlier_owner_can_do_nothing_after_a_take) {
  const Position first = store().take("shop", "p0").value();
  const Position second = store().take("shop", "p0").value();
  {
    auto zombie = begin();
    ASSERT_TRUE(add_effect(*zombie, "twice"));
    auto status = zombie->advance("p0", first, 1);
    if (status) status = zombie->commit();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().tag, "fenced");
  }
  auto owner = begin();
  ASSERT_TRUE(owner->advance("p0", second, 1));
  ASSERT_TRUE(add_effect(*owner, "once"));
  ASSERT_TRUE(owner->commit());
  owner.reset();
  EXPECT_EQ(effects(), std::vector<std::string>{"once"});
}

// The offset is back where the first owner left it, but others have been there in between.
TEST_P(StoreSuite, H26_the_same_offset_under_another_owner_is_another_position) {
  const Position first = store().take("shop", "p0").value();
  store().take("shop", "p0").value();
  const Position third = store().take("shop", "p0").value();
  EXPECT_EQ(third.offset, first.offset);
  auto transaction = begin();
  auto status = transaction->advance("p0", first, 1);
  if (status) status = transaction->commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().tag, "fenced");
}

TEST_P(StoreSuite, positions_of_scopes_and_partitions_are_apart) {
  auto transaction = begin("a");
  ASSERT_TRUE(transaction->advance("p0", {}, 1));
  ASSERT_TRUE(transaction->advance("p1", {}, 2));
  ASSERT_TRUE(transaction->commit());
  transaction = begin("b");
  ASSERT_TRUE(transaction->advance("p0", {}, 3));
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  const Position taken = store().take("b", "p1").value();
  EXPECT_EQ(store().position("a", "p0").value(), (Position{1, 0}));
  EXPECT_EQ(store().position("a", "p1").value(), (Position{2, 0}));
  EXPECT_EQ(store().position("b", "p0").value(), (Position{3, 0}));
  EXPECT_EQ(store().position("b", "p1").value(), taken);
  EXPECT_EQ(store().position("A", "p0").value(), Position{});
  EXPECT_EQ(store().position("a ", "p0").value(), Position{});
}

TEST_P(StoreSuite, empty_and_over_long_names_are_refused) {
  const std::string longest(255, 's'), longer(256, 's');
  for (const std::string& bad : {std::string(), longer}) {
    EXPECT_EQ(store().begin(bad).error().tag, "config");
    EXPECT_EQ(store().take(bad, "p0").error().tag, "config");
    EXPECT_EQ(store().take("shop", bad).error().tag, "config");
    EXPECT_EQ(store().position(bad, "p0").error().tag, "config");
    EXPECT_EQ(store().forget(bad, 1, 1).error().tag, "config");
    auto transaction = begin();
    EXPECT_EQ(transaction->advance(bad, {}, 1).error().tag, "config");
    EXPECT_EQ(transaction->enqueue(bad, {}).error().tag, "config");
  }
  EXPECT_TRUE(store().take(longest, longest));
}

TEST_P(StoreSuite, a_transaction_without_a_commit_leaves_nothing) {
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance("p0", {}, 10));
    ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
    ASSERT_TRUE(add_effect(*transaction, "a"));
    ASSERT_TRUE(transaction->settle(delivery("a"), parked("no")));
    ASSERT_TRUE(transaction->enqueue("next", {}));
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(store().position("shop", "p0").value(), Position{});
    EXPECT_FALSE(records().find("shop", "a").value());
    EXPECT_TRUE(records().parked("shop", 0, 10).value().empty());
    EXPECT_TRUE(outbox().pending("next", 10).value().empty());
    EXPECT_TRUE(effects().empty());
    reopen();
  }
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
}

TEST_P(StoreSuite, a_committed_transaction_can_do_nothing_more) {
  auto transaction = begin();
  ASSERT_TRUE(transaction->advance("p0", {}, 10));
  ASSERT_TRUE(transaction->commit());
  EXPECT_FALSE(transaction->advance("p0", {10, 0}, 20));
  EXPECT_FALSE(transaction->admit(std::vector{entry("a")}));
  EXPECT_FALSE(transaction->settle(delivery("a"), rejected("no")));
  EXPECT_FALSE(transaction->enqueue("next", {}));
  EXPECT_FALSE(transaction->commit());
  transaction.reset();
  EXPECT_EQ(store().position("shop", "p0").value(), (Position{10, 0}));
}

TEST_P(StoreSuite, a_commit_whose_answer_was_lost_can_be_looked_up) {
  Position position = store().take("shop", "p0").value();
  std::vector<std::string> expected;
  for (int round = 0; round < 6; ++round) {
    const std::string id = "m" + std::to_string(round);
    expected.push_back(id);
    under_test_->lose_next_commit(round % 2 == 0);
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 3);
      auto transaction = begin();
      ASSERT_TRUE(transaction->advance("p0", position, round + 1));
      const auto verdicts = transaction->admit(std::vector{entry(id, round)});
      ASSERT_TRUE(verdicts) << verdicts.error().text;
      ASSERT_EQ(verdicts->at(0).kind, Kind::fresh);
      ASSERT_TRUE(add_effect(*transaction, id));
      const auto committed = transaction->commit();
      EXPECT_EQ(committed.has_value(), attempt > 0);
      transaction.reset();
      if (!committed) {
        EXPECT_EQ(committed.error().remedy, Remedy::recheck);
      }
      // Whatever became of it, the position says it, and the effect agrees.
      const Position now = store().position("shop", "p0").value();
      const bool happened = now == Position{round + 1, position.fence};
      EXPECT_TRUE(happened || now == position);
      EXPECT_EQ(effects().size(), expected.size() - (happened ? 0 : 1));
      if (!happened) continue;
      position = now;
      break;
    }
  }
  EXPECT_EQ(effects(), expected);
  reopen();
  EXPECT_EQ(effects(), expected);
  EXPECT_EQ(store().position("shop", "p0").value(), position);
}

TEST_P(StoreSuite, operations_are_written_down) {
  store().take("shop", "p0").value();
  // The horizon moves all the time; one line is enough until something else happens.
  forget_all(400);
  forget_all(500);
  forget_all(500);
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->settle(delivery("x"), parked("broken")));
    ASSERT_TRUE(transaction->commit());
  }
  reopen();
  const auto all = records().operations("shop", 0, 100).value();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].action, "take");
  EXPECT_EQ(all[0].subject, "p0");
  EXPECT_EQ(all[1].action, "forget");
  EXPECT_EQ(all[1].subject, "500");
  EXPECT_EQ(all[2].action, "park");
  EXPECT_EQ(all[2].subject, "x");
  EXPECT_EQ(all[2].reason, "broken");
  const auto page = records().operations("shop", all[0].number, 1).value();
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(page[0].number, all[1].number);
  EXPECT_TRUE(records().operations("other", 0, 100).value().empty());
}

}  // namespace once::testing
