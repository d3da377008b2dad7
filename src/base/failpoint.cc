// SPDX-License-Identifier: Apache-2.0
#include "base/failpoint.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace once {
namespace {

constexpr std::array names{
    std::string_view("log_before_write"),    std::string_view("log_after_write"),
    std::string_view("log_after_sync"),      std::string_view("log_before_roll"),
    std::string_view("log_after_roll"),      std::string_view("lane_after_begin"),
    std::string_view("lane_after_advance"),  std::string_view("lane_after_admit"),
    std::string_view("lane_after_handler"),  std::string_view("lane_before_commit"),
    std::string_view("lane_after_commit"),   std::string_view("lane_after_ack"),
    std::string_view("lane_after_position"), std::string_view("lane_after_work"),
    std::string_view("lane_before_park"),    std::string_view("lane_after_defer"),
    std::string_view("feed_after_poll"),     std::string_view("lane_after_claim"),
    std::string_view("lane_after_effect"),   std::string_view("lane_after_settle"),
    std::string_view("relay_after_enter"),   std::string_view("relay_after_assign"),
    std::string_view("relay_after_append"),  std::string_view("relay_after_sent"),
    std::string_view("store_before_forget"), std::string_view("store_after_horizon"),
    std::string_view("store_before_commit"), std::string_view("store_after_commit_sent"),
};
static_assert(names.size() == static_cast<std::size_t>(Point::count_));

std::atomic<Point> armed_point{Point::count_};
std::atomic<long> passes_left{0};

void kill_at_armed_point(Point point) {
  if (point != armed_point.load(std::memory_order_relaxed)) return;
  if (passes_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

}  // namespace

std::string_view name_of(Point point) { return names.at(static_cast<std::size_t>(point)); }

std::optional<Point> point_named(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Point>(i);
  return std::nullopt;
}

bool arm_point_from_environment() {
  const char* setting = std::getenv("ONCE_POINT");
  if (setting == nullptr) return true;
  const std::string text = setting;
  const auto colon = text.find(':');
  const auto point = point_named(text.substr(0, colon));
  if (!point) return false;
  passes_left = colon == std::string::npos ? 1 : std::strtol(text.c_str() + colon + 1, nullptr, 10);
  armed_point = *point;
  point_hook = kill_at_armed_point;
  return passes_left > 0;
}

}  // namespace once
