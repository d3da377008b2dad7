// SPDX-License-Identifier: Apache-2.0
#include "testing/sim_clock.h"

#include <gtest/gtest.h>

namespace once::testing {
namespace {

TEST(SimClock, a_jump_moves_the_wall_and_never_the_ticks) {
  SimClock clock(1000);
  const std::int64_t before_ns = clock.ticks_ns();
  clock.jump(-500);
  EXPECT_EQ(clock.now_ms(), 500);
  EXPECT_EQ(clock.ticks_ns(), before_ns);
  clock.step(20);
  EXPECT_EQ(clock.now_ms(), 520);
  EXPECT_EQ(clock.ticks_ns(), before_ns + 20'000'000);
}

}  // namespace
}  // namespace once::testing
