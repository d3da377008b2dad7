// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace once {

// The store's clock as far as it was measured, carried on by our ticks: what a person does to the
// clock of this machine does not move it. Any thread.
class StoreClock {
 public:
  explicit StoreClock(Clock& clock) : clock_(clock) {}

  // The store has just answered that it is `now_ms`.
  void measured(std::int64_t now_ms) { offset_ms_ = now_ms - ticks_ms(); }

  bool is_measured() const { return offset_ms_ != unknown; }

  // Not measured yet: later than any time.
  std::int64_t now_ms() const {
    const std::int64_t offset = offset_ms_;
    return offset == unknown ? unknown : offset + ticks_ms();
  }

 private:
  static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::max();

  std::int64_t ticks_ms() const { return clock_.ticks_ns() / 1'000'000; }

  Clock& clock_;
  std::atomic<std::int64_t> offset_ms_{unknown};
};

}  // namespace once
