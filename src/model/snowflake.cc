// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/identity.h>

#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>

namespace once {
namespace {

constexpr std::int64_t epoch_ms = 1'704'067'200'000;  // 2024-01-01T00:00:00Z
constexpr int time_shift = 22;
constexpr int cluster_shift = 17;
constexpr int topic_shift = 12;
constexpr std::int64_t sequence_max = (1 << topic_shift) - 1;
constexpr std::int64_t time_max = (std::int64_t{1} << 41) - 1;

class Snowflake final : public IdMaker {
 public:
  Snowflake(Clock& clock, const SnowflakeOptions& options) : clock_(clock), options_(options) {}

  Result<std::string> next() override {
    const std::lock_guard lock(mutex_);
    std::int64_t now_ms = clock_.now_ms();
    if (now_ms < last_ms_) now_ms = ONCE_TRY(wait_until(last_ms_, now_ms));
    if (now_ms == last_ms_ && sequence_ == sequence_max)
      now_ms = ONCE_TRY(wait_until(last_ms_ + 1, now_ms));
    const std::int64_t time = now_ms - epoch_ms;
    if (time < 0 || time > time_max)
      return fail(Remedy::stop, "clock",
                  fmt::format("the clock says {} ms, outside the years 2024 to 2093 that a "
                              "snowflake can hold; set the clock",
                              now_ms));
    sequence_ = now_ms == last_ms_ ? sequence_ + 1 : 0;
    last_ms_ = now_ms;
    const std::int64_t id = time << time_shift | std::int64_t{options_.cluster} << cluster_shift |
                            std::int64_t{options_.topic} << topic_shift | sequence_;
    return fmt::format("{:019}", id);  // as bytes, too, they are in order of time
  }

 private:
  // Waits for the clock to reach `target_ms`. The number of looks is limited as well as the
  // distance, since a clock may stand still.
  Result<std::int64_t> wait_until(std::int64_t target_ms, std::int64_t now_ms) {
    constexpr int looks_max = 200;
    for (int look = 0; look < looks_max; ++look) {
      if (now_ms >= target_ms) return now_ms;
      if (target_ms - now_ms > options_.back_ms_max + 1) break;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      now_ms = clock_.now_ms();
    }
    if (now_ms >= target_ms) return now_ms;
    return fail(
        Remedy::retry, "clock",
        fmt::format("the clock is {} ms behind the last id; try again when it has caught up",
                    target_ms - now_ms));
  }

  Clock& clock_;
  const SnowflakeOptions options_;
  std::mutex mutex_;
  std::int64_t last_ms_ = -1;
  std::int64_t sequence_ = 0;
};

}  // namespace

Result<std::unique_ptr<IdMaker>> make_snowflake(Clock& clock, const SnowflakeOptions& options) {
  if (options.cluster > 31 || options.topic > 31)
    return fail(Remedy::stop, "config",
                fmt::format("a snowflake has 5 bits for the cluster and 5 for the topic: {} and {} "
                            "are not both in 0..31",
                            options.cluster, options.topic));
  if (options.back_ms_max < 0 || options.back_ms_max > 30)
    return fail(Remedy::stop, "config", "back_ms_max of a snowflake is 0..30");
  return std::make_unique<Snowflake>(clock, options);
}

Result<std::int64_t> snowflake_time_ms(std::string_view id) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc() || end != id.data() + id.size() || number < 0 || id.size() > 19)
    return fail(Remedy::park, "no_time",
                fmt::format("\"{}\" is not a snowflake", id.substr(0, 64)));
  return (number >> time_shift) + epoch_ms;
}

}  // namespace once
