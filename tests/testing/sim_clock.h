// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>

#include <cstdint>

namespace once::testing {

// Time that passes only when a test says so. The wall may jump, the ticks never go back.
class SimClock final : public Clock {
 public:
  explicit SimClock(std::int64_t start_ms = 1'700'000'000'000) : wall_ms_(start_ms) {}

  std::int64_t now_ms() override { return wall_ms_; }
  std::int64_t ticks_ns() override { return ticks_ns_; }

  void step(std::int64_t ms) {
    wall_ms_ += ms;
    ticks_ns_ += ms * 1'000'000;
  }
  // Somebody sets the clock: only the wall moves, in either direction.
  void jump(std::int64_t ms) { wall_ms_ += ms; }

 private:
  std::int64_t wall_ms_;
  std::int64_t ticks_ns_ = 1;
};

}  // namespace once::testing
