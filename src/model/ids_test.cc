// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/identity.h>
#include <rapidcheck.h>

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace once {
namespace {

class ManualClock final : public Clock {
 public:
  std::int64_t now_ms() override { return now_ms_ + (looks_++ / looks_per_ms_); }
  std::int64_t ticks_ns() override { return now_ms() * 1'000'000; }
  void set(std::int64_t now_ms) {
    now_ms_ = now_ms;
    looks_ = 0;
  }
  void run(std::int64_t looks_per_ms) { looks_per_ms_ = looks_per_ms; }

 private:
  std::atomic<std::int64_t> now_ms_{1'800'000'000'000};
  std::atomic<std::int64_t> looks_{0};
  std::atomic<std::int64_t> looks_per_ms_{1'000'000'000};  // it stands still
};

// Draws from several threads; answers how many ids came out and how many were different.
std::pair<std::size_t, std::size_t> draw_from_threads(IdMaker& maker, int threads, int each) {
  std::mutex mutex;
  std::set<std::string> ids;
  std::size_t drawn = 0;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&] {
      std::vector<std::string> own;
      for (int i = 0; i < each; ++i)
        if (auto id = maker.next()) own.push_back(*id);
      const std::lock_guard lock(mutex);
      drawn += own.size();
      ids.insert(own.begin(), own.end());
    });
  for (std::thread& thread : running) thread.join();
  return {drawn, ids.size()};
}

TEST(Snowflake, holds_time_cluster_topic_and_sequence) {
  ManualClock clock;
  auto maker = make_snowflake(clock, {3, 5, 20}).value();
  const std::int64_t first = std::stoll(maker->next().value());
  const std::int64_t second = std::stoll(maker->next().value());
  EXPECT_EQ(second, first + 1);
  EXPECT_EQ(first >> 22, 1'800'000'000'000 - 1'704'067'200'000);
  EXPECT_EQ(first >> 17 & 31, 3);
  EXPECT_EQ(first >> 12 & 31, 5);
  EXPECT_EQ(first & 4095, 0);
  EXPECT_EQ(snowflake_time_ms(std::to_string(first)).value(), 1'800'000'000'000);
}

TEST(Snowflake, never_repeats_and_stays_in_order_wherever_the_clock_goes) {
  EXPECT_TRUE(rc::check([] {
    ManualClock clock;
    auto maker = make_snowflake(clock, {0, 0, 0}).value();
    std::int64_t now_ms = 1'800'000'000'000;
    std::string last;
    for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-30, 30))) {
      now_ms += step;
      clock.set(now_ms);
      const auto id = maker->next();
      if (!id) {
        RC_ASSERT(id.error().remedy == Remedy::retry);
        RC_ASSERT(id.error().tag == "clock");
        continue;
      }
      RC_ASSERT(*id > last);
      last = *id;
    }
  }));
}

TEST(Snowflake, waits_for_a_clock_that_went_back_a_little) {
  ManualClock clock;
  auto maker = make_snowflake(clock, {0, 0, 20}).value();
  const std::string before = maker->next().value();
  clock.set(1'800'000'000'000 - 20);
  clock.run(2);
  EXPECT_GT(maker->next().value(), before);
  clock.set(1'800'000'000'000 - 1000);
  EXPECT_EQ(maker->next().error().tag, "clock");
}

TEST(Snowflake, a_full_millisecond_waits_for_the_next) {
  ManualClock clock;
  auto maker = make_snowflake(clock, {}).value();
  for (int i = 0; i < 4096; ++i) ASSERT_TRUE(maker->next());
  EXPECT_EQ(maker->next().error().remedy, Remedy::retry);  // the clock stands still
  clock.set(1'800'000'000'001);
  EXPECT_TRUE(maker->next());
}

TEST(Snowflake, threads_and_a_restart_never_get_the_same) {
  auto maker = make_snowflake(system_clock(), {}).value();
  EXPECT_EQ(draw_from_threads(*maker, 4, 5000),
            (std::pair<std::size_t, std::size_t>(20000, 20000)));
  const std::string last = maker->next().value();
  maker.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GT(make_snowflake(system_clock(), {}).value()->next().value(), last);
}

TEST(Snowflake, other_clusters_and_topics_make_other_ids) {
  ManualClock clock;
  std::set<std::string> ids;
  for (std::uint32_t cluster = 0; cluster < 32; ++cluster)
    for (std::uint32_t topic = 0; topic < 32; ++topic)
      ids.insert(make_snowflake(clock, {cluster, topic, 20}).value()->next().value());
  EXPECT_EQ(ids.size(), 1024u);
  EXPECT_EQ(make_snowflake(clock, {32, 0, 20}).error().tag, "config");
  EXPECT_EQ(make_snowflake(clock, {0, 32, 20}).error().tag, "config");
  clock.set(0);
  EXPECT_EQ(make_snowflake(clock, {}).value()->next().error().remedy, Remedy::stop);
}

TEST(Uuid7, is_a_uuid_of_version_7_with_its_time) {
  ManualClock clock;
  auto maker = make_uuid7(clock);
  const std::string id = maker->next().value();
  EXPECT_EQ(id.size(), 36u);
  EXPECT_EQ(id[14], '7');
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos);
  EXPECT_EQ(uuid7_time_ms(id).value(), 1'800'000'000'000);
}

TEST(Uuid7, grows_also_when_the_clock_stands_still_or_goes_back) {
  ManualClock clock;
  auto maker = make_uuid7(clock);
  std::string last;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 100 == 0) clock.set(1'800'000'000'000 - i);
    const std::string id = maker->next().value();
    ASSERT_GT(id, last);
    last = id;
  }
}

TEST(Uuid7, threads_and_makers_never_get_the_same) {
  ManualClock clock;
  auto maker = make_uuid7(clock);
  EXPECT_EQ(draw_from_threads(*maker, 4, 5000),
            (std::pair<std::size_t, std::size_t>(20000, 20000)));
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(make_uuid7(clock)->next().value());
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace once
