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
  }

  SimClock clock_;
  MemoryStore store_{clock_};
  PipelineOptions options_;
};

// H8: three hours of downtime pass on the wall, none in the source: nothing is forgotten.
TEST_F(ForgetterTest, H08_the_horizon_follows_the_source_and_not_the_wall) {
  Forgetter forgetter(store_, clock_, options_);
  forgetter.own("p0");
  forgetter.observe("p0", 5000);
  EXPECT_EQ(forgetter.horizon_ms(), 4000);
  clock_.step(3 * 3600 * 1000);
  EXPECT_EQ(forgetter.horizon_ms(), 4000);
  forgetter.observe("p0", 4500);  // an older message does not move it back
  EXPECT_EQ(forgetter.horizon_ms(), 4000);
}

TEST_F(ForgetterTest, the_slowest_partition_decides) {
  Forgetter forgetter(store_, clock_, options_);
  forgetter.own("p0");
  forgetter.own("p1");
  forgetter.observe("p0", 90'000);
  EXPECT_EQ(forgetter.horizon_ms(), std::nullopt);  // p1 may hold old messages
  forgetter.observe("p1", 7000);
  EXPECT_EQ(forgetter.horizon_ms(), 6000);
  forgetter.disown("p1");
  EXPECT_EQ(forgetter.horizon_ms(), 89'000);
}

TEST_F(ForgetterTest, an_empty_partition_does_not_hold_the_horizon_back_once_all_is_read) {
  Forgetter forgetter(store_, clock_, options_);
  forgetter.own("p0");
  forgetter.own("empty");
  forgetter.observe("p0", 90'000);
  EXPECT_EQ(forgetter.horizon_ms(), std::nullopt);
  forgetter.caught_up();
  EXPECT_EQ(forgetter.horizon_ms(), 89'000);
}

TEST_F(ForgetterTest, for_ever_means_for_ever) {
  options_.retention_ms = -1;
  Forgetter forgetter(store_, clock_, options_);
  forgetter.own("p0");
  forgetter.observe("p0", 90'000);
  EXPECT_EQ(forgetter.horizon_ms(), std::nullopt);
  EXPECT_EQ(forgetter.step().value().rows, 0u);
}

// Each horizon costs the store a commit and a walk through the ledger.
TEST_F(ForgetterTest, the_store_gets_a_new_horizon_only_after_a_hundredth_of_the_retention) {
  Forgetter forgetter(store_, clock_, options_);
  forgetter.own("p0");
  const auto horizon_after = [&](std::int64_t born_ms) {
    forgetter.observe("p0", born_ms);
    EXPECT_TRUE(forgetter.step());
    return store_.records()->horizon_ms(options_.scope).value();
  };
  EXPECT_EQ(horizon_after(5000), 4000);
  EXPECT_EQ(horizon_after(5009), 4000);
  EXPECT_EQ(horizon_after(5010), 4010);
}

TEST(Watermark, moves_only_over_what_is_settled_without_holes) {
  Watermark watermark;
  for (std::int64_t i = 0; i < 5; ++i) watermark.started(i, i == 4 ? 9 : i + 1);
  watermark.settled(1);
  watermark.settled(2);
  EXPECT_EQ(watermark.take(), std::nullopt);
  watermark.settled(0);
  EXPECT_EQ(watermark.take(), 3);
  EXPECT_EQ(watermark.take(), std::nullopt);
  watermark.settled(4);
  EXPECT_EQ(watermark.take(), std::nullopt);
  watermark.settled(3);
  EXPECT_EQ(watermark.take(), 9);
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
