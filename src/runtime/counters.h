// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/observe.h>

#include <atomic>
#include <cstdint>

#include "runtime/figures.h"

namespace once {

// What the lanes of one pipeline count. Written by lanes, read by anyone; each number is exact, but
// a reader may see them at slightly different instants.
struct Counters : Counts<std::atomic<std::uint64_t>> {
  void add(const Counts<std::uint64_t>& tally) {
    for_each_count([&](const auto& count) { *count.of(*this) += *count.of(tally); });
  }

  Statistics snapshot() const {
    Statistics now;
    for_each_count([&](const auto& count) { *count.of(now) = *count.of(*this); });
    return now;
  }
};

}  // namespace once
