// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/pipeline_testing.h"

namespace once {
namespace {

using testing::apply_effect;
using testing::effects_of;
using testing::numbered;
using testing::ScriptSource;
using testing::write_effect;

class PipelineTest : public testing::PipelineFixture {
 protected:
  void fill(const std::string& partition, const std::string& prefix, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      source_.add(partition, {.id = prefix + std::to_string(i),
                              .key = "k" + std::to_string(i % 11),
                              .body = "b",
                              .headers = {},
                              .timestamp_ms = 1000});
    source_.announce(partition);
  }
  std::unique_ptr<Pipeline> make(Handler handler) { return make_from(source_, std::move(handler)); }

  ScriptSource source_;
};

TEST_F(PipelineTest, takes_every_message_of_every_partition_through_its_lanes_in_order) {
  options_.lanes = 3;
  for (int p = 0; p < 5; ++p) fill("p" + std::to_string(p), "m", 0);
  for (int p = 0; p < 5; ++p) fill("p" + std::to_string(p), "p" + std::to_string(p) + "-", 500);
  auto pipeline = make(each(apply_effect));
  ASSERT_TRUE(pipeline->run());
  for (int p = 0; p < 5; ++p) {
    const std::string name = "p" + std::to_string(p);
    EXPECT_EQ(effects_of(store_, name), numbered(500, name + "-"));
    EXPECT_EQ(store_.position("shop", name).value().offset, 500);
    EXPECT_EQ(source_.acked(name), 499);
  }
  EXPECT_EQ(pipeline->statistics().applied, 2500u);
  EXPECT_EQ(pipeline->statistics().lag, 0);
}

TEST_F(PipelineTest, what_a_source_counts_beyond_its_last_message_is_no_lag) {
  fill("p0", "m", 100);
  source_.end_with_markers(2);
  auto pipeline = make(each(apply_effect));
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(100, "m"));
  EXPECT_EQ(pipeline->statistics().lag, 0);
}

TEST_F(PipelineTest, goes_on_where_the_committed_effects_end) {
  fill("p0", "m", 100);
  ASSERT_TRUE(make(each(apply_effect))->run());
  source_.announce("p0");  // a restart: the broker would start from the beginning
  ASSERT_TRUE(source_.seek("p0", 0));
  auto second = make(each(apply_effect));
  ASSERT_TRUE(second->run());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(100));
  EXPECT_EQ(second->statistics().delivered, 0u);
}

TEST_F(PipelineTest, by_key_lanes_share_a_partition_and_keep_the_order_of_each_key) {
  options_.lanes = 4;
  options_.order = Order::key;
  fill("p0", "m", 2000);
  // Each key has a list of its own, so that lanes do not conflict on one value.
  const Handler handler =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        Delivery of_key = delivery;
        of_key.partition = delivery.key;
        ONCE_TRY(write_effect(of_key, transaction));
        return applied();
      });
  ASSERT_TRUE(make(handler)->run());
  std::size_t all = 0;
  for (std::size_t key = 0; key < 11; ++key) {
    std::vector<std::string> expected;
    for (std::size_t i = key; i < 2000; i += 11) expected.push_back("m" + std::to_string(i));
    EXPECT_EQ(effects_of(store_, "k" + std::to_string(key)), expected);
    all += expected.size();
  }
  EXPECT_EQ(all, 2000u);
  EXPECT_EQ(store_.position("shop", "p0").value().offset, 2000);
  const auto& acks = source_.acks("p0");
  EXPECT_TRUE(std::is_sorted(acks.begin(), acks.end()));
  EXPECT_EQ(acks.back(), 1999);
}

TEST_F(PipelineTest, stop_finishes_what_runs_and_gives_back_the_rest) {
  options_.stop_at_end = false;
  options_.batch_count_max = 10;
  fill("p0", "m", 1000);
  std::atomic<int> handled = 0;
  auto pipeline =
      make(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++handled;
        return apply_effect(delivery, transaction);
      }));
  std::thread stopper([&] {
    while (handled < 25) std::this_thread::yield();
    pipeline->stop();
  });
  EXPECT_TRUE(pipeline->run());
  stopper.join();
  const auto effects = effects_of(store_, "p0");
  EXPECT_LT(effects.size(), 1000u);
  EXPECT_EQ(effects, numbered(effects.size()));
  EXPECT_EQ(store_.position("shop", "p0").value().offset,
            static_cast<std::int64_t>(effects.size()));
  EXPECT_GT(source_.released(), 0u);
}

TEST_F(PipelineTest, a_failing_lane_ends_the_pipeline_with_its_error) {
  fill("p0", "m", 100);
  auto pipeline = make(each([](const Delivery& delivery, KeyValueTransaction&) -> Result<Outcome> {
    if (delivery.id == "m60") return fail(Remedy::stop, "licence", "expired");
    return applied();
  }));
  const Status done = pipeline->run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().tag, "licence");
}

TEST_F(PipelineTest, a_queue_without_order_is_told_by_ids_and_acknowledged_message_by_message) {
  ScriptSource queue(
      {.name = "queue:", .ordered = false, .replayable = false, .redelivery_ms_max = 1000});
  for (int i = 0; i < 200; ++i)
    queue.add("q", {.id = "m" + std::to_string(i % 100),
                    .key = "",
                    .body = "b",
                    .headers = {},
                    .timestamp_ms = 1000});
  queue.announce("q");
  auto pipeline = Pipeline::make(queue, store_, each(apply_effect), options_).value();
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(effects_of(store_, "q"), numbered(100));
  EXPECT_EQ(pipeline->statistics().duplicates, 100u);
  EXPECT_EQ(queue.acks("q").size(), 200u);
}

// H21: while a message is not settled, nothing of it is acknowledged.
TEST_F(PipelineTest, H21_a_message_is_not_acknowledged_while_it_is_retried) {
  options_.stop_at_end = false;
  fill("p0", "m", 10);
  std::atomic<bool> tried = false;
  auto pipeline = make(each([&](const Delivery& delivery, KeyValueTransaction&) -> Result<Outcome> {
    if (delivery.id != "m5") return applied();
    tried = true;
    return retry("later", 60'000);
  }));
  std::thread stopper([&] {
    while (!tried || pipeline->statistics().applied < 5) std::this_thread::yield();
    pipeline->stop();
  });
  EXPECT_TRUE(pipeline->run());
  stopper.join();
  EXPECT_LT(source_.acked("p0"), 5);
  EXPECT_EQ(store_.position("shop", "p0").value().offset, 5);
  EXPECT_EQ(source_.released(), 5u);
}

TEST_F(PipelineTest, forgets_what_is_below_the_retention_of_the_source) {
  options_.retention_ms = 100;
  for (int i = 0; i < 300; ++i)
    source_.add("p0", {.id = "m" + std::to_string(i),
                       .key = "",
                       .body = "b",
                       .headers = {},
                       .timestamp_ms = 10'000 + i});
  source_.announce("p0");
  options_.stop_at_end = false;
  auto pipeline = make(each(apply_effect));
  std::thread stopper([&] {
    while (pipeline->statistics().forgotten < 199)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pipeline->stop();
  });
  ASSERT_TRUE(pipeline->run());
  stopper.join();
  EXPECT_EQ(store_.snapshot().scopes.at("shop").ledger.size(), 101u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(300));
}

TEST_F(PipelineTest, what_cannot_work_is_refused_before_it_starts) {
  options_.scope = "";
  EXPECT_EQ(Pipeline::make(source_, store_, each(apply_effect), options_).error().tag, "config");
}

TEST_F(PipelineTest, says_why_it_waits_and_no_more_when_it_goes_on) {
  fill("p0", "m", 10);
  std::atomic<bool> refuses = true;
  store_.set_commit_fault(
      [&] { return refuses ? MemoryStore::CommitFault::refused : MemoryStore::CommitFault::none; });
  auto pipeline = make(each(apply_effect));
  std::thread running([&] { EXPECT_TRUE(pipeline->run()); });
  while (pipeline->statistics().waiting.empty()) std::this_thread::yield();
  EXPECT_NE(pipeline->statistics().waiting.find("refused"), std::string::npos);
  refuses = false;
  running.join();
  EXPECT_EQ(pipeline->statistics().waiting, "");
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

// The standard library throws when it has no memory or no thread to give.
TEST_F(PipelineTest, memory_that_a_lane_cannot_have_is_an_error_of_the_run) {
  fill("p0", "m", 10);
  store_.set_commit_fault([]() -> MemoryStore::CommitFault { throw std::bad_alloc(); });
  auto pipeline = make(each(apply_effect));
  const Status ran = pipeline->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().tag, "exhausted");
  EXPECT_EQ(ran.error().remedy, Remedy::retry);
  store_.set_commit_fault(nullptr);
  EXPECT_EQ(effects_of(store_, "p0"), std::vector<std::string>{});
}

// Ten minutes pass in a fifth of a second.
class HastyClock final : public Clock {
 public:
  std::int64_t now_ms() override { return system_clock().now_ms(); }
  std::int64_t ticks_ns() override { return (system_clock().ticks_ns() - start_ns_) * 3'000; }

 private:
  const std::int64_t start_ns_ = system_clock().ticks_ns();
};

// After its first messages it has no memory, for so many polls.
class SourceWithoutMemory final : public Source {
 public:
  SourceWithoutMemory(Source& source, int failures) : source_(source), failures_(failures) {}
  SourceTraits traits() const override { return source_.traits(); }
  SourceReplay* replay() override { return source_.replay(); }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    if (begun_ && failures_-- > 0)
      return fail(Remedy::retry, "exhausted", "there is no memory left");
    auto batch = source_.poll(std::min<std::size_t>(count_max, 10), wait_ms);
    begun_ = begun_ || (batch && !batch->deliveries.empty());
    return batch;
  }
  Status ack(std::span<const Delivery> done) override { return source_.ack(done); }
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return source_.release(undone, delay_ms);
  }

 private:
  Source& source_;
  int failures_;
  bool begun_ = false;
};

TEST_F(PipelineTest, what_stays_exhausted_ends_a_run_that_has_begun) {
  fill("p0", "m", 30);
  HastyClock clock;
  SourceWithoutMemory source(source_, 1'000'000'000);
  const Status ran = make_from(source, each(apply_effect), clock)->run();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().tag, "exhausted");
  EXPECT_EQ(ran.error().remedy, Remedy::retry) << "it may be started again";
  EXPECT_NE(ran.error().text.find("600 s"), std::string::npos) << ran.error().text;
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10)) << "what was done stays done";
  source_.announce("p0");
  ASSERT_TRUE(make(each(apply_effect))->run());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(30));
}

TEST_F(PipelineTest, what_was_exhausted_for_a_while_goes_on) {
  fill("p0", "m", 30);
  SourceWithoutMemory source(source_, 5);
  ASSERT_TRUE(make_from(source, each(apply_effect))->run());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(30));
}

}  // namespace
}  // namespace once
