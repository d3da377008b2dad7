// SPDX-License-Identifier: Apache-2.0
// What a pipeline tells about itself, and when it stops by itself.
#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/pipeline_testing.h"

namespace once {
namespace {

using testing::effects_of;
using testing::numbered;
using testing::ScriptSource;
using testing::write_effect;

// A source that can be away, and whose topic has partitions of other owners.
class TroubledSource final : public Source, public SourceReplay {
 public:
  explicit TroubledSource(ScriptSource& script) : script_(script) {}

  SourceTraits traits() const override {
    SourceTraits traits = script_.traits();
    traits.partitions = {"p0", "p1"};
    return traits;
  }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    if (refuses_polls) return fail(Remedy::retry, "away", "no answer to a poll");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const auto revoked = revoke.exchange(false); revoked) {
      Batch batch;
      batch.event = Batch::Event::revoked;
      batch.partition = "p0";
      return batch;
    }
    return script_.poll(count_max, wait_ms);
  }
  Status ack(std::span<const Delivery> done) override { return script_.ack(done); }
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return script_.release(undone, delay_ms);
  }
  SourceReplay* replay() override { return this; }
  Status seek(std::string_view partition, std::int64_t offset) override {
    return script_.seek(partition, offset);
  }
  Result<std::vector<PartitionEnd>> ends() override {
    if (is_away) return fail(Remedy::retry, "away", "no broker answers");
    return topic_ends;
  }

  std::atomic<bool> refuses_polls = false;
  std::atomic<bool> is_away = false;
  std::atomic<bool> revoke = false;
  std::vector<PartitionEnd> topic_ends;

 private:
  ScriptSource& script_;
};

// The clock of a machine that is an hour late.
class LateClock final : public Clock {
 public:
  std::int64_t now_ms() override { return system_clock().now_ms() - 3'600'000; }
  std::int64_t ticks_ns() override { return system_clock().ticks_ns(); }
};

class PipelineObserver : public testing::PipelineFixture {
 protected:
  PipelineObserver() {
    options_.retry.backoff_ms_max = 50;
    options_.observer = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      told_.push_back(event);
    };
  }

  void fill(const std::string& partition, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      script_.add(partition, {.id = "m" + std::to_string(i), .timestamp_ms = 1000});
    script_.announce(partition);
  }
  std::unique_ptr<Pipeline> make(Handler handler, Clock& clock = system_clock()) {
    return make_from(source_, std::move(handler), clock);
  }
  std::unique_ptr<Pipeline> make() {
    return make(each([](const Delivery& delivery, KeyValueTransaction& store) -> Result<Outcome> {
      ONCE_TRY(write_effect(delivery, store));
      return applied();
    }));
  }
  std::vector<Event> told(EventKind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<Event> found;
    std::copy_if(told_.begin(), told_.end(), std::back_inserter(found),
                 [&](const Event& event) { return event.kind == kind; });
    return found;
  }
  // Runs a pipeline that does not end by itself, until all of these have been the case in turn.
  void run_through(Pipeline& pipeline, const std::vector<std::function<bool()>>& stages) {
    std::thread stopper([&] {
      for (const auto& stage : stages) {
        bool reached = false;
        for (int i = 0; i < 2000 && !(reached = stage()); ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_TRUE(reached) << "stage " << &stage - stages.data();
      }
      pipeline.stop();
    });
    EXPECT_TRUE(pipeline.run());
    stopper.join();
  }

  ScriptSource script_;
  TroubledSource source_{script_};
  std::mutex mutex_;
  std::vector<Event> told_;  // guarded by mutex_
};

TEST_F(PipelineObserver, a_store_that_is_away_is_told_and_so_is_its_return) {
  fill("p0", 10);
  std::atomic<bool> refuses = true;
  store_.set_commit_fault(
      [&] { return refuses ? MemoryStore::CommitFault::refused : MemoryStore::CommitFault::none; });
  auto pipeline = make();
  options_.stop_at_end = false;
  std::thread repair([&] {
    for (int i = 0; i < 2000 && told(EventKind::store_away).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(pipeline->statistics().waiting.empty());
    refuses = false;
  });
  EXPECT_TRUE(pipeline->run());
  repair.join();
  ASSERT_EQ(told(EventKind::store_away).size(), 1u);
  EXPECT_GE(told(EventKind::store_away)[0].duration_ms, 1'000);
  ASSERT_EQ(told(EventKind::store_back).size(), 1u);
  EXPECT_EQ(pipeline->statistics().waiting, "");
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

TEST_F(PipelineObserver, a_source_that_delivers_nothing_because_it_is_away_says_so) {
  options_.stop_at_end = false;
  fill("p0", 10);
  source_.is_away = true;
  auto pipeline = make();
  run_through(*pipeline, {[&] { return !told(EventKind::source_away).empty(); },
                          [&] {
                            source_.is_away = false;
                            return !told(EventKind::source_back).empty();
                          },
                          [&] {
                            source_.refuses_polls = true;
                            return told(EventKind::source_away).size() == 2;
                          },
                          [&] {
                            source_.refuses_polls = false;
                            return told(EventKind::source_back).size() == 2;
                          }});
  EXPECT_NE(told(EventKind::source_away)[0].text.find("no broker answers"), std::string::npos);
  EXPECT_NE(told(EventKind::source_away)[1].text.find("no answer to a poll"), std::string::npos);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

TEST_F(PipelineObserver, partitions_that_change_hands_are_told_and_so_is_having_none) {
  options_.stop_at_end = false;
  fill("p0", 3);
  fill("p1", 3);
  auto pipeline = make();
  run_through(*pipeline,
              {[&] { return pipeline->statistics().applied == 3; },  // p1 has the same ids
               [&] { return pipeline->statistics().duplicates == 3; },
               [&] { return source_.revoke = true; },
               [&] { return !told(EventKind::partitions_revoked).empty(); }});
  ASSERT_EQ(told(EventKind::partitions_assigned).size(), 1u);
  EXPECT_EQ(told(EventKind::partitions_assigned)[0].subject, "p0, p1");
  EXPECT_EQ(told(EventKind::partitions_revoked)[0].subject, "p0");
  EXPECT_TRUE(told(EventKind::partitions_awaited).empty());
}

TEST_F(PipelineObserver, a_process_without_partitions_says_that_it_waits_for_its_group) {
  options_.stop_at_end = false;
  auto pipeline = make();
  run_through(*pipeline, {[&] { return !told(EventKind::partitions_awaited).empty(); }});
  EXPECT_EQ(told(EventKind::partitions_awaited)[0].severity, Severity::info);
}

TEST_F(PipelineObserver, parked_messages_are_told_once_for_each_kind_of_reason_and_counted) {
  fill("p0", 60);
  auto pipeline = make(each([](const Delivery& delivery, Transaction&) -> Result<Outcome> {
    if (delivery.offset % 10 == 0) return parked("no account " + std::to_string(delivery.offset));
    if (delivery.offset % 10 == 5) return parked("the amount is negative");
    return applied();
  }));
  ASSERT_TRUE(pipeline->run());
  std::uint64_t sum = 0;
  for (const Event& event : told(EventKind::message_parked)) sum += event.count;
  EXPECT_EQ(sum, 12u);
  EXPECT_EQ(told(EventKind::message_parked).size(), 4u);  // two at once, two counts at the end
  EXPECT_EQ(told(EventKind::message_parked)[0].text, "parked p0 offset 0: no account 0");
}

TEST_F(PipelineObserver, retries_are_told) {
  fill("p0", 5);
  auto pipeline = make(each([](const Delivery& delivery, Transaction&) -> Result<Outcome> {
    if (delivery.offset == 2 && delivery.attempt < 4) return retry("the bank is busy");
    return applied();
  }));
  ASSERT_TRUE(pipeline->run());
  std::uint64_t sum = 0;
  for (const Event& event : told(EventKind::message_retried)) sum += event.count;
  EXPECT_EQ(sum, 3u);
  EXPECT_EQ(told(EventKind::message_retried)[0].text,
            "p0 offset 2 is tried again: the bank is busy");
}

TEST_F(PipelineObserver, a_pipeline_that_is_fenced_says_so) {
  fill("p0", 10);
  std::atomic<bool> refused = false, taken = false;
  store_.set_commit_fault([&] {  // until a rival has come
    refused = true;
    return taken ? MemoryStore::CommitFault::none : MemoryStore::CommitFault::refused;
  });
  auto pipeline = make();
  std::thread rival([&] {
    while (!refused) std::this_thread::yield();
    EXPECT_TRUE(store_.take("shop", "p0"));
    taken = true;
  });
  const Status ran = pipeline->run();
  rival.join();
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().tag, "fenced");
  ASSERT_EQ(told(EventKind::fenced).size(), 1u);
  EXPECT_EQ(told(EventKind::fenced)[0].severity, Severity::warning);
}

TEST_F(PipelineObserver, clocks_that_differ_are_told) {
  LateClock late;
  fill("p0", 1);
  auto pipeline =
      make(each([](const Delivery&, Transaction&) -> Result<Outcome> { return applied(); }), late);
  ASSERT_TRUE(pipeline->run());
  ASSERT_EQ(told(EventKind::clocks_differ).size(), 1u);
  EXPECT_NE(told(EventKind::clocks_differ)[0].text.find("ahead of this machine's"),
            std::string::npos);
}

TEST_F(PipelineObserver, the_lag_is_that_of_the_topic_with_the_partitions_of_others) {
  options_.stop_at_end = false;
  fill("p0", 10);
  const Position theirs = store_.take("shop", "p1").value();
  auto transaction = store_.begin("shop").value();
  ASSERT_TRUE(transaction->advance("p1", theirs, 20));
  ASSERT_TRUE(transaction->commit());
  transaction.reset();
  source_.topic_ends = {{"p0", 10}, {"p1", 50}};
  auto pipeline = make();
  run_through(*pipeline, {[&] {
    const Statistics now = pipeline->statistics();
    return now.applied == 10 && now.lag == 30;
  }});
  EXPECT_EQ(pipeline->statistics().lag_partitions, 2u);
  EXPECT_EQ(pipeline->statistics().partitions, 2u);
}

TEST_F(PipelineObserver, a_lag_that_is_known_of_some_partitions_says_of_how_many) {
  fill("p0", 10);
  auto pipeline = make();
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().lag, 0);
  EXPECT_EQ(pipeline->statistics().lag_partitions, 1u);
  EXPECT_EQ(pipeline->statistics().partitions, 2u);
}

TEST_F(PipelineObserver, a_pipeline_that_parks_everything_stops_and_loses_nothing) {
  fill("p0", 2'000);
  auto broken = make(each(
      [](const Delivery&, Transaction&) -> Result<Outcome> { return parked("no such column"); }));
  const Status stopped = broken->run();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().remedy, Remedy::park);
  EXPECT_EQ(stopped.error().tag, "parked");
  const std::uint64_t parked_count = broken->statistics().parked;
  EXPECT_GE(parked_count, 100u);
  EXPECT_LT(parked_count, 2'000u);
  // The next run begins behind them, and the two together have every message once.
  source_.revoke = false;
  script_.announce("p0");
  auto repaired = make();
  ASSERT_TRUE(repaired->run());
  const auto all = numbered(2'000);
  const std::vector<std::string> rest(all.begin() + static_cast<std::ptrdiff_t>(parked_count),
                                      all.end());
  EXPECT_EQ(effects_of(store_, "p0"), rest);
  EXPECT_EQ(store_.records()->parked("shop", 0, 3'000).value().size(), parked_count);
}

TEST_F(PipelineObserver, one_bad_message_in_ten_and_any_number_of_duplicates_stop_nothing) {
  for (std::size_t i = 0; i < 1'000; ++i) {
    script_.add("p0", {.id = "m" + std::to_string(i / 2), .timestamp_ms = 1000});
  }
  script_.announce("p0");
  auto pipeline = make(each([](const Delivery& delivery, Transaction&) -> Result<Outcome> {
    return delivery.id.ends_with("7") ? parked("seven") : applied();
  }));
  EXPECT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().parked, 50u);
  EXPECT_EQ(pipeline->statistics().duplicates, 500u);
}

TEST_F(PipelineObserver, without_a_limit_everything_may_be_parked) {
  options_.parked_max.reset();
  fill("p0", 500);
  auto pipeline =
      make(each([](const Delivery&, Transaction&) -> Result<Outcome> { return parked("no"); }));
  EXPECT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().parked, 500u);
}

TEST_F(PipelineObserver, a_limit_that_makes_no_sense_is_refused) {
  for (const ParkedLimit& limit :
       {ParkedLimit{.percent = 0}, ParkedLimit{.percent = 101}, ParkedLimit{.messages_min = 0},
        ParkedLimit{.window = 10, .messages_min = 11}, ParkedLimit{.window = 1'000'001}}) {
    options_.parked_max = limit;
    const auto made = Pipeline::make(
        source_, store_,
        each([](const Delivery&, Transaction&) -> Result<Outcome> { return applied(); }), options_);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text.find("parked_max"), std::string::npos);
  }
}

}  // namespace
}  // namespace once
