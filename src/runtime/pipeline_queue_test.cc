// SPDX-License-Identifier: Apache-2.0
// Pipelines on a source without order: all lanes work, and a message that waits holds back nobody.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "store/memory/memory.h"
#include "testing/memory_queue.h"

namespace once {
namespace {

using testing::MemoryQueue;
using testing::MemoryQueueOptions;
using testing::QueueSource;

class PipelineQueue : public ::testing::Test {
 protected:
  void make_queue(const MemoryQueueOptions& options) {
    queue_ = std::make_shared<MemoryQueue>(system_clock(), options);
  }
  void send(int count, const std::string& kind = "order") {
    for (int i = 0; i < count; ++i)
      queue_->send({.id = fmt::format("{} {}", kind, i), .body = kind, .timestamp_ms = 1000});
  }
  static PipelineOptions options(std::size_t lanes) {
    PipelineOptions options;
    options.scope = "shop";
    options.id = IdRule{};
    options.lanes = lanes;
    options.retention_ms = -1;
    options.stop_at_end = true;
    return options;
  }
  static Status write_effect(const Delivery& delivery, KeyValueTransaction& transaction) {
    const std::string key = "effects of " + std::string(delivery.id);
    return transaction.put(key, ONCE_TRY(transaction.get(key)).value_or("") + "x");
  }
  Statistics run(Handler handler, const PipelineOptions& options) {
    QueueSource source(queue_);
    auto pipeline = Pipeline::make(source, store_, std::move(handler), options).value();
    const Status ran = pipeline->run();
    EXPECT_TRUE(ran) << ran.error().text;
    return pipeline->statistics();
  }
  std::string effects_of(const std::string& id) const {
    const MemoryState state = store_.snapshot();
    const auto found = state.values.find("effects of " + id);
    return found == state.values.end() ? "" : found->second;
  }
  void expect_each_once(int count, const std::string& kind = "order") const {
    for (int i = 0; i < count; ++i) {
      const std::string id = fmt::format("{} {}", kind, i);
      EXPECT_EQ(effects_of(id), "x") << id;
    }
  }
  void expect_all_acknowledged(std::size_t count) const {
    EXPECT_EQ(queue_->ready() + queue_->unacknowledged(), 0u);
    EXPECT_EQ(queue_->acknowledged().size(), count);
  }

  // Until something is true, or for a long time.
  template <class Condition>
  static bool wait_until(const Condition& condition) {
    for (int i = 0; i < 10'000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }

  std::shared_ptr<MemoryQueue> queue_ = std::make_shared<MemoryQueue>(system_clock());
  MemoryStore store_{system_clock()};
};

TEST_F(PipelineQueue, all_lanes_work_at_the_same_time) {
  constexpr int lanes = 4;
  make_queue({.unacknowledged_max = 8});
  send(40);
  std::mutex mutex;
  std::condition_variable arrived;
  int inside = 0;
  int inside_max = 0;
  const Statistics done =
      run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            {
              std::unique_lock lock(mutex);
              inside_max = std::max(inside_max, ++inside);
              arrived.notify_all();
              arrived.wait_for(lock, std::chrono::seconds(5), [&] { return inside_max == lanes; });
              --inside;
            }
            ONCE_TRY(write_effect(delivery, transaction));
            return applied();
          }),
          options(lanes));
  EXPECT_EQ(inside_max, lanes);
  EXPECT_EQ(done.applied, 40u);
  expect_each_once(40);
  expect_all_acknowledged(40);
}

TEST_F(PipelineQueue, a_message_that_waits_holds_back_no_other) {
  send(3, "patient");
  send(30);
  PipelineOptions one_lane = options(1);
  one_lane.batch_count_max = 5;
  QueueSource source(queue_);
  auto pipeline =
      Pipeline::make(
          source, store_,
          each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            ONCE_TRY(write_effect(delivery, transaction));
            if (delivery.body == "patient") return retry("not yet", 3'600'000);
            return applied();
          }),
          one_lane)
          .value();
  std::thread running([&] { EXPECT_TRUE(pipeline->run()); });
  EXPECT_TRUE(wait_until([&] { return queue_->acknowledged().size() == 30; }));
  pipeline->stop();
  running.join();
  expect_each_once(30);
  EXPECT_EQ(effects_of("patient 0"), "");
  EXPECT_EQ(queue_->ready(), 3u) << "what waits is given back at the end";
}

TEST_F(PipelineQueue, what_waited_is_tried_again_and_parked_in_the_end) {
  send(10, "hopeless");
  send(10);
  PipelineOptions asked = options(2);
  asked.retry = {.attempts_max = 3, .backoff_ms_min = 1, .backoff_ms_max = 2};
  asked.parked_max.reset();
  const Statistics done =
      run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            ONCE_TRY(write_effect(delivery, transaction));
            if (delivery.body == "hopeless") return retry("never");
            return applied();
          }),
          asked);
  EXPECT_EQ(done.parked, 10u);
  EXPECT_EQ(done.applied, 10u);
  EXPECT_EQ(done.retried, 20u);
  expect_each_once(10);
  EXPECT_EQ(effects_of("hopeless 0"), "");
  expect_all_acknowledged(20);
}

TEST_F(PipelineQueue, more_than_may_wait_are_given_back_with_their_delay) {
  make_queue({.delay_ms_max = 3'600'000});
  send(8);
  PipelineOptions asked = options(1);
  asked.waiting_max = 2;
  std::mutex mutex;
  std::set<std::string> seen;
  const Statistics done =
      run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            ONCE_TRY(write_effect(delivery, transaction));
            const std::lock_guard lock(mutex);
            if (seen.emplace(delivery.id).second) return retry("not at first", 50);
            return applied();
          }),
          asked);
  EXPECT_EQ(done.applied, 8u);
  EXPECT_GT(done.delivered, 8u) << "some came again from the queue";
  expect_each_once(8);
  expect_all_acknowledged(8);
}

TEST_F(PipelineQueue, a_lease_is_extended_while_its_message_is_worked_on) {
  make_queue({.lease_ms = 1500});
  send(1);
  std::atomic<int> calls = 0;
  const Statistics done =
      run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            ++calls;
            std::this_thread::sleep_for(std::chrono::milliseconds(2500));
            ONCE_TRY(write_effect(delivery, transaction));
            return applied();
          }),
          options(2));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(done.delivered, 1u) << "it was not delivered again";
  expect_each_once(1);
  expect_all_acknowledged(1);
}

TEST_F(PipelineQueue, several_lanes_find_out_for_themselves_what_messages_are) {
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{3}}) {
    make_queue({});
    send(50, fmt::format("lanes{}", lanes));
    std::mutex mutex;
    std::set<std::thread::id> threads;
    PipelineOptions asked = options(lanes);
    asked.batch_count_max = 5;
    asked.wanted = [&](const Delivery&) -> Result<bool> {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      return true;
    };
    run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          ONCE_TRY(write_effect(delivery, transaction));
          return applied();
        }),
        asked);
    EXPECT_EQ(threads.contains(std::this_thread::get_id()), lanes == 1);
    expect_each_once(50, fmt::format("lanes{}", lanes));
  }
}

// A queue that does not hear of every third ack.
class DeafQueue final : public Source {
 public:
  explicit DeafQueue(std::shared_ptr<MemoryQueue> queue) : inner_(std::move(queue)) {}

  SourceTraits traits() const override { return inner_.traits(); }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    return inner_.poll(count_max, wait_ms);
  }
  Status ack(std::span<const Delivery> done) override {
    if (++acks_ % 3 != 0) return inner_.ack(done);
    return fail(Remedy::retry, "away", "the broker does not answer");
  }
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override {
    return inner_.release(undone, delay_ms);
  }
  SourceLeases* leases() override { return inner_.leases(); }

 private:
  QueueSource inner_;
  int acks_ = 0;
};

TEST_F(PipelineQueue, an_ack_that_fails_ends_nothing_and_doubles_nothing) {
  make_queue({.lease_ms = 60});
  send(20);
  DeafQueue source(queue_);
  PipelineOptions asked = options(2);
  asked.batch_count_max = 4;
  asked.stop_at_end = false;
  auto pipeline =
      Pipeline::make(
          source, store_,
          each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            ONCE_TRY(write_effect(delivery, transaction));
            return applied();
          }),
          asked)
          .value();
  std::thread running([&] {
    const Status ran = pipeline->run();
    EXPECT_TRUE(ran) << ran.error().text;
  });
  EXPECT_TRUE(wait_until([&] { return queue_->acknowledged().size() == 20; }));
  pipeline->stop();
  running.join();
  EXPECT_EQ(pipeline->statistics().applied, 20u);
  EXPECT_GT(pipeline->statistics().duplicates, 0u);
  expect_each_once(20);
}

TEST_F(PipelineQueue, at_most_once_acknowledges_before_the_work) {
  send(5);
  PipelineOptions asked = options(2);
  asked.semantics = Semantics::at_most_once;
  std::atomic<bool> all_before = true;
  run(each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (queue_->acknowledged().empty()) all_before = false;
        ONCE_TRY(write_effect(delivery, transaction));
        return applied();
      }),
      asked);
  EXPECT_TRUE(all_before);
  expect_each_once(5);
  expect_all_acknowledged(5);
}

}  // namespace
}  // namespace once
