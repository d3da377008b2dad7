// SPDX-License-Identifier: Apache-2.0
#include "runtime/forgetter.h"

#include <gtest/gtest.h>

#include "runtime/backoff.h"
#include "runtime/watermark.h"
#include "store/memory/memory.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::SimClock;

class ForgetterTest : public ::testing::Test {
 protected:
  ForgetterTest() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.retention_ms = 1000;
    clock_.jump(100'000 - clock_.now_ms());
  }

  // Some process, whichever it is, tells the store how far it has come.
  void tell(const std::string& partition, const Progress& progress) {
    const Position position = store_.take("shop", partition).value();
    auto transaction = store_.begin("shop").value();
    ASSERT_TRUE(transaction->advance(partition, position, position.offset, progress));
    ASSERT_TRUE(transaction->commit());
  }
  std::optional<std::int64_t> horizon() {
    EXPECT_TRUE(forgetter_.look());
    return forgetter_.horizon_ms();
  }

  SimClock clock_;
  MemoryStore store_{clock_};
  PipelineOptions options_;
  StoreClock store_clock_{clock_};
  Forgetter forgetter_{store_, clock_, options_, store_clock_};
};

// H8: three hours of downtime pass on the wall, none in the source: nothing is forgotten.
TEST_F(ForgetterTest, H08_the_horizon_follows_the_source_and_not_the_wall) {
  forgetter_.own("p0");
  EXPECT_EQ(horizon(), std::nullopt);
  tell("p0", {.settled_ms = 5000});
  EXPECT_EQ(horizon(), 4000);
  clock_.step(3 * 3600 * 1000);
  EXPECT_EQ(horizon(), 4000);
  tell("p0", {.settled_ms = 4500});  // an older message does not move it back
  EXPECT_EQ(horizon(), 4000);
}

// Two members of one group after downtime: what one has not come to is not forgotten by the other.
TEST_F(ForgetterTest, the_slowest_partition_decides_whoever_owns_it) {
  forgetter_.own("p0");
  forgetter_.set_topic({"p0", "p1"});
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), std::nullopt);  // p1 may hold old messages
  tell("p1", {.settled_ms = 7000});
  EXPECT_EQ(horizon(), 6000);
  tell("p1", {.settled_ms = 95'000});
  EXPECT_EQ(horizon(), 89'000);
}

// Before its first assignment a process does not know what it will have to handle.
TEST_F(ForgetterTest, a_process_that_owns_nothing_forgets_nothing) {
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), std::nullopt);
  forgetter_.own("p0");
  EXPECT_EQ(horizon(), 89'000);
  forgetter_.disown("p0");
  EXPECT_EQ(horizon(), std::nullopt);
}

TEST_F(ForgetterTest, partitions_that_the_topic_has_no_more_do_not_count) {
  forgetter_.own("p0");
  tell("p0", {.settled_ms = 90'000});
  tell("gone", {.settled_ms = 7000});
  EXPECT_EQ(horizon(), 6000);
  forgetter_.set_topic({"p0"});
  EXPECT_EQ(horizon(), std::nullopt) << "it may have been added";
  forgetter_.confirm_topic({"p0"});
  EXPECT_EQ(horizon(), 89'000);
  tell("gone", {.settled_ms = 8000});
  EXPECT_EQ(horizon(), 89'000);
}

// Another member has found it first: what is in it is not forgotten before the topic is asked.
TEST_F(ForgetterTest, a_partition_that_was_added_holds_the_horizon_until_it_has_come_as_far) {
  forgetter_.own("p0");
  forgetter_.confirm_topic({"p0"});
  tell("p0", {.settled_ms = 50'000});
  EXPECT_EQ(horizon(), 49'000);
  (void)store_.take("shop", "p1").value();
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), std::nullopt);
  forgetter_.confirm_topic({"p0", "p1"});
  EXPECT_EQ(horizon(), std::nullopt) << "nobody knows how old its messages are";
  tell("p1", {.settled_ms = 60'000});
  EXPECT_EQ(horizon(), 59'000);
  // The topic was made anew, and is smaller.
  forgetter_.confirm_topic({"p0"});
  EXPECT_EQ(horizon(), std::nullopt);
  forgetter_.confirm_topic({"p0"});
  EXPECT_EQ(horizon(), 89'000);
  forgetter_.confirm_topic({"p0", "p1"});
  EXPECT_EQ(horizon(), 59'000);
}

TEST_F(ForgetterTest, a_message_that_waits_holds_the_horizon) {
  forgetter_.own("p0");
  tell("p0", {.settled_ms = 90'000, .waiting_ms = 30'000});
  EXPECT_EQ(horizon(), 29'000);
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), 89'000);
}

TEST_F(ForgetterTest, a_partition_without_traffic_does_not_hold_the_horizon_once_it_is_drained) {
  forgetter_.own("p0");
  forgetter_.own("idle");
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), std::nullopt);
  EXPECT_EQ(forgetter_.take_held_back("idle"), 90'000);
  EXPECT_FALSE(forgetter_.take_held_back("idle"));  // once per look
  EXPECT_FALSE(forgetter_.take_held_back("p0"));
  tell("idle", {.settled_ms = 90'000, .drained = true});
  EXPECT_EQ(horizon(), 89'000);
  EXPECT_FALSE(forgetter_.take_held_back("idle"));
}

TEST_F(ForgetterTest, births_in_the_future_do_not_carry_the_horizon_beyond_the_stores_clock) {
  forgetter_.own("p0");
  tell("p0", {.settled_ms = 4'070'908'800'000});  // 2099
  EXPECT_EQ(horizon(), clock_.now_ms() - 1000);
}

TEST_F(ForgetterTest, for_ever_means_for_ever) {
  options_.retention_ms = -1;
  forgetter_.own("p0");
  tell("p0", {.settled_ms = 90'000});
  EXPECT_EQ(horizon(), std::nullopt);
  EXPECT_EQ(forgetter_.step().value().rows, 0u);
}

// Each horizon costs the store a commit and a walk through the ledger.
TEST_F(ForgetterTest, the_store_gets_a_new_horizon_only_after_a_hundredth_of_the_retention) {
  forgetter_.own("p0");
  const auto horizon_after = [&](std::int64_t born_ms) {
    tell("p0", {.settled_ms = born_ms});
    EXPECT_TRUE(forgetter_.step());
    return store_.records()->horizon_ms(options_.scope).value();
  };
  EXPECT_EQ(horizon_after(5000), 4000);
  EXPECT_EQ(horizon_after(5009), 4000);
  EXPECT_EQ(horizon_after(5010), 4010);
}

TEST_F(ForgetterTest, where_the_store_keeps_no_progress_that_of_this_process_counts) {
  forgetter_.own("queue");
  forgetter_.observe("queue", {.settled_ms = 90'000, .waiting_ms = 50'000});
  EXPECT_EQ(horizon(), 49'000);
  forgetter_.observe("queue", {.settled_ms = 91'000});
  EXPECT_EQ(horizon(), 90'000);
}

TEST(StoreClock, goes_on_with_our_ticks_whatever_happens_to_our_wall) {
  SimClock clock;
  StoreClock store_clock(clock);
  store_clock.measured(5000);
  clock.jump(-3'600'000);
  clock.step(10);
  EXPECT_EQ(store_clock.now_ms(), 5010);
}

TEST(Watermark, moves_only_over_what_is_settled_without_holes) {
  Watermark watermark;
  for (std::int64_t i = 0; i < 5; ++i) {
    watermark.started({0, i}, {i, 7}, i == 4 ? 9 : i + 1);
    watermark.identified({0, i}, 100 - i);
  }
  EXPECT_EQ(watermark.progress().waiting_ms, 96);
  watermark.settled({0, 1});
  watermark.settled({0, 2});
  EXPECT_EQ(watermark.take(), std::nullopt);
  watermark.settled({0, 0});
  EXPECT_EQ(watermark.take(), 3);
  EXPECT_EQ(watermark.take(), std::nullopt);
  watermark.settled({0, 4});
  EXPECT_EQ(watermark.take(), std::nullopt);
  EXPECT_EQ(watermark.progress().waiting_ms, 97);
  EXPECT_EQ(watermark.progress().settled_ms, 100);
  EXPECT_EQ(watermark.progress().witness.offset, 2);
  watermark.settled({0, 3});
  EXPECT_EQ(watermark.take(), 9);
  EXPECT_TRUE(watermark.idle());
  EXPECT_EQ(watermark.progress().waiting_ms, -1);
}

TEST(Watermark, of_a_source_without_order_remembers_only_what_is_under_way) {
  Watermark watermark;
  watermark.started({0, 7}, {7, 0}, 8);
  watermark.identified({0, 7}, 50);
  for (std::int64_t tag = 10; tag < 20; ++tag) {
    watermark.started({0, tag}, {tag, 0}, tag + 1);
    watermark.identified({0, tag}, 100);
    watermark.settled_apart({0, tag});
  }
  EXPECT_EQ(watermark.progress().waiting_ms, 50);
  EXPECT_EQ(watermark.progress().settled_ms, 100);
  watermark.settled_apart({0, 7});
  EXPECT_TRUE(watermark.idle());
}

// Its birth is found on its lane. The horizon must not pass it before.
TEST(Watermark, goes_no_further_while_a_birth_is_not_known) {
  Watermark watermark;
  watermark.started({0, 1}, {1, 0}, 2);
  watermark.identified({0, 1}, 100);
  watermark.settled_apart({0, 1});
  watermark.started({0, 2}, {2, 0}, 3);
  watermark.started({0, 3}, {3, 0}, 4);
  watermark.identified({0, 3}, 9000);
  watermark.settled_apart({0, 3});
  EXPECT_EQ(watermark.progress().settled_ms, 100);
  watermark.identified({0, 2}, 150);
  EXPECT_EQ(watermark.progress().settled_ms, 9000);
  EXPECT_EQ(watermark.progress().waiting_ms, 150);
  watermark.settled_apart({0, 2});
  EXPECT_EQ(watermark.progress().waiting_ms, -1);
}

TEST(Watermark, tags_of_another_session_are_other_messages) {
  Watermark watermark;
  for (const std::uint64_t session : {1u, 2u}) {
    watermark.started({session, 7}, {7, 0}, 8);
    watermark.identified({session, 7}, static_cast<std::int64_t>(session) * 100);
  }
  watermark.settled_apart({1, 7});
  EXPECT_FALSE(watermark.idle());
  EXPECT_EQ(watermark.progress().waiting_ms, 200);
  watermark.given_back({2, 7});
  EXPECT_TRUE(watermark.idle());
  EXPECT_EQ(watermark.progress().waiting_ms, -1);
  EXPECT_EQ(watermark.progress().settled_ms, 100);
}

TEST(Backoff, doubles_between_its_limits) {
  const RetryPolicy policy{.attempts_max = 9, .backoff_ms_min = 10, .backoff_ms_max = 100};
  EXPECT_EQ(backoff_ms(policy, 1), 10);
  EXPECT_EQ(backoff_ms(policy, 2), 20);
  EXPECT_EQ(backoff_ms(policy, 4), 80);
  EXPECT_EQ(backoff_ms(policy, 5), 100);
  EXPECT_EQ(backoff_ms(policy, 4'000'000'000u), 100);
  EXPECT_EQ(backoff_ms({.attempts_max = 1, .backoff_ms_min = 0, .backoff_ms_max = 0}, 3), 0);
}

}  // namespace
}  // namespace once
