// SPDX-License-Identifier: Apache-2.0
#include "operate/patience.h"

#include <once/clock.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace once::operate {
namespace {

constexpr std::int64_t pause_ms_min = 100;
constexpr std::int64_t pause_ms_max = 2'000;
constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::int64_t deadline_after(std::optional<std::int64_t> wait_s) {
  constexpr std::int64_t ns_per_second = 1'000'000'000;
  const std::int64_t now_ns = system_clock().ticks_ns();
  if (!wait_s || *wait_s >= (never - now_ns) / ns_per_second) return never;
  return now_ns + *wait_s * ns_per_second;
}

// A connection that breaks while a schema is made is "lost": opening the store again looks.
bool is_away(const Error& error) { return error.tag == "away" || error.tag == "lost"; }

}  // namespace

// A person who has just started it is told at once.
Patience::Patience(std::optional<std::int64_t> wait_s, Observer observer,
                   std::function<bool()> is_stopped)
    : events_(std::move(observer), system_clock(), {.grace_ms = 0}),
      deadline_ns_(deadline_after(wait_s)),
      pause_ms_(pause_ms_min),
      is_stopped_(std::move(is_stopped)) {}

bool Patience::wait_for(const Dependency& on, const Error& error) {
  const std::int64_t now_ns = system_clock().ticks_ns();
  if (!is_away(error) || now_ns >= deadline_ns_ || (is_stopped_ && is_stopped_())) return false;
  events_.away(on, {}, this, error);
  const std::int64_t left_ms = (deadline_ns_ - now_ns) / ns_per_ms + 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(std::min(pause_ms_, left_ms)));
  pause_ms_ = std::min(pause_ms_ * 2, pause_ms_max);
  return true;
}

}  // namespace once::operate
