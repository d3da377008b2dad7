// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>

#include <atomic>
#include <cstdint>

namespace once {

// What the lanes of one pipeline count. Written by lanes, read by anyone; each number is exact, but
// a reader may see them at slightly different instants.
struct Counters {
  using Counter = std::atomic<std::uint64_t>;
  Counter delivered{0}, applied{0}, rejected{0}, no_effect{0}, parked{0}, duplicates{0}, skipped{0},
      passed{0}, mismatched{0}, too_old{0}, ahead{0}, retried{0}, deferred{0}, transactions{0},
      rolled_back{0}, rechecked{0}, forgotten{0}, batch_count{0};

  Statistics snapshot() const {
    Statistics s;
    s.delivered = delivered;
    s.applied = applied;
    s.rejected = rejected;
    s.no_effect = no_effect;
    s.parked = parked;
    s.duplicates = duplicates;
    s.skipped = skipped;
    s.passed = passed;
    s.mismatched = mismatched;
    s.too_old = too_old;
    s.ahead = ahead;
    s.retried = retried;
    s.deferred = deferred;
    s.transactions = transactions;
    s.rolled_back = rolled_back;
    s.rechecked = rechecked;
    s.forgotten = forgotten;
    s.batch_count = static_cast<std::size_t>(batch_count.load());
    return s;
  }
};

}  // namespace once
