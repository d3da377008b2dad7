// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace once {

// Time comes from here and nowhere else, so that a simulator can bend it. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, milliseconds since 1970. May jump in either direction.
  virtual std::int64_t now_ms() = 0;
  // Time that never goes back, in nanoseconds from an arbitrary start.
  virtual std::int64_t ticks_ns() = 0;
};

// The machine's clock.
Clock& system_clock();

}  // namespace once
