// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/failpoint.h"
#include "simulation/history.h"
#include "store/memory/memory.h"
#include "testing/random.h"
#include "testing/sim_clock.h"
#include "testing/sim_disk.h"

namespace once::simulation {

// What a run leaves behind: a line per event, as a hash, and how often rare states were reached.
class Trace {
 public:
  explicit Trace(bool verbose) : verbose_(verbose) {}

  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    const std::string line = fmt::format(format, std::forward<Args>(args)...);
    for (const char byte : line)
      hash_ = (hash_ ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    ++events_;
    if (verbose_) std::printf("%6llu %s\n", static_cast<unsigned long long>(events_), line.c_str());
  }
  void reached(const std::string& state) {
    ++reached_[state];
    note("reached: {}", state);
  }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t events() const { return events_; }
  const std::map<std::string, std::uint64_t>& reached() const { return reached_; }

 private:
  const bool verbose_;
  std::uint64_t hash_ = 1469598103934665603u;
  std::uint64_t events_ = 0;
  std::map<std::string, std::uint64_t> reached_;
};

// What is shared by everything in one simulated world. One thread.
struct Context {
  Context(std::uint64_t seed, bool verbose)
      : random(seed), trace(verbose), disk(random.next()), memory(clock, "store") {}

  testing::Random random;
  testing::SimClock clock;
  Trace trace;
  History history;
  testing::SimDisk disk;
  MemoryStore memory;
  bool calm = false;                // no more faults
  std::function<void()> interrupt;  // lets rivals run in the middle of a handler
  std::int64_t youngest_birth_ms = 0;

  bool fault(std::uint32_t per_thousand) { return !calm && random.chance(per_thousand); }
};

// While it lives, the process that runs dies at the n-th failpoint it passes; 0: at none.
class DeathAtPoint {
 public:
  explicit DeathAtPoint(std::uint64_t passes) : before_(left_) {
    left_ = passes;
    point_hook = [](Point) {
      if (left_ > 0 && --left_ == 0) throw SimulatedDeath();
    };
  }
  DeathAtPoint(const DeathAtPoint&) = delete;
  DeathAtPoint& operator=(const DeathAtPoint&) = delete;
  ~DeathAtPoint() {
    left_ = before_;
    if (before_ == 0) point_hook = nullptr;
  }

 private:
  static inline std::uint64_t left_ = 0;
  const std::uint64_t before_;
};

}  // namespace once::simulation
