// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace once {

// Every place where the order of steps matters for a crash. Each is passed by ONCE_POINT exactly
// once in the sources, and the crash matrix kills a process at each of them.
enum class Point : std::uint8_t {
  log_before_write,
  log_after_write,
  log_after_sync,
  log_before_roll,
  log_after_roll,
  lane_after_begin,
  lane_after_advance,
  lane_after_admit,
  lane_after_handler,
  lane_before_commit,
  lane_after_commit,
  lane_after_ack,
  lane_after_position,  // at most once: the position is committed, the work is not done
  lane_after_work,      // at least once: the work is committed, the position is not moved
  lane_before_park,
  lane_after_defer,   // messages that were put off are committed; none of them is due
  feed_after_poll,    // messages that waited are due; none of them has been handled again
  lane_after_claim,   // the claim is durable, the effect outside has not begun
  lane_after_effect,  // the effect outside has happened, its claim is not settled
  lane_after_settle,  // the claim is settled, the position is not moved
  relay_after_enter,
  relay_after_assign,
  relay_after_append,
  relay_after_sent,
  store_before_forget,
  store_after_horizon,
  store_before_commit,      // on a server: all writes were sent and run, the commit was not
  store_after_commit_sent,  // on a server: nobody will read the answer to the commit
  count_                    // how many there are
};

std::string_view name_of(Point point);
std::optional<Point> point_named(std::string_view name);

// Thrown by a simulated world to end a simulated process at once. Nobody may swallow it.
struct SimulatedDeath {};

// What happens at a point while a test has armed it; nullptr otherwise, which costs one load.
using PointHook = void (*)(Point);
inline std::atomic<PointHook> point_hook{nullptr};

// Arms what the environment says: ONCE_POINT=NAME or NAME:N kills this process (SIGKILL) when it
// passes that point for the N-th time. Called once by `main`; an unknown name is told by `false`.
bool arm_point_from_environment();

}  // namespace once

#define ONCE_POINT(name)                                                                   \
  do {                                                                                     \
    if (auto once_hook_ = ::once::point_hook.load(std::memory_order_relaxed)) [[unlikely]] \
      once_hook_(::once::Point::name);                                                     \
  } while (false)
