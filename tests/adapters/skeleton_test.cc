// SPDX-License-Identifier: Apache-2.0
// The source and the sink of docs/adapters.md go through the suites, and through a pipeline.
#include <once/once.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "model/message_view.h"
#include "store/memory/memory.h"
#include "streams/queue_suite.h"
#include "streams/sink_suite.h"
#include "testing/script_source.h"

namespace once::testing {
namespace {

#include "skeleton.h"

// --- The source

std::shared_ptr<Queue>& queue_at(const std::string& url) {
  static std::map<std::string, std::shared_ptr<Queue>> queues;
  return queues[url];
}

QueueUnderTest skeleton_queue() {
  QueueUnderTest queue;
  queue.name = "skeleton";
  queue.new_queue = [] {
    static int count = 0;
    const std::string url = fmt::format("skeleton:queue{}", ++count);
    queue_at(url) = std::make_shared<Queue>();
    return url;
  };
  queue.send = [](const std::string& url, const std::vector<Message>& messages) {
    for (const Message& message : messages) queue_at(url)->unread.push_back(message);
  };
  queue.open = [](const std::string& url) -> Result<std::unique_ptr<Source>> {
    return std::make_unique<SkeletonSource>(queue_at(url));
  };
  queue.cut = [](Source& source) { dynamic_cast<SkeletonSource&>(source).disconnect(); };
  queue.let_pass_ms = [](std::int64_t) {};  // it has no time
  return queue;
}

INSTANTIATE_TEST_SUITE_P(Skeleton, QueueSuite, ::testing::Values(skeleton_queue()));

// --- The sink

// All that a topic has, read in order to its end.
class WholeTopic final : public Source {
 public:
  explicit WholeTopic(const Topic& topic) {
    for (std::size_t i = 0; i < topic.partitions.size(); ++i) {
      const std::string name = fmt::format("topic/{}", i);
      script_.announce(name);
      for (const Message& message : topic.partitions[i]) script_.add(name, message);
    }
  }
  SourceTraits traits() const override { return script_.traits(); }
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override {
    auto batch = script_.poll(count_max, wait_ms);
    if (batch && batch->drained) batch->event = Batch::Event::end;
    return batch;
  }
  Status ack(std::span<const Delivery>) override { return {}; }
  Status release(std::span<const Delivery>, std::int64_t) override { return {}; }
  SourceReplay* replay() override { return &script_; }

 private:
  ScriptSource script_;
};

std::shared_ptr<Topic>& topic_at(const std::string& url) {
  static std::map<std::string, std::shared_ptr<Topic>> topics;
  return topics[url];
}

StreamUnderTest skeleton_topic() {
  StreamUnderTest stream;
  stream.name = "skeleton";
  stream.new_topic = [](std::uint32_t partitions) {
    static int count = 0;
    const std::string url = fmt::format("skeleton:topic{}", ++count);
    topic_at(url) = std::make_shared<Topic>(partitions);
    return url;
  };
  stream.open_sink = [](const std::string& url) -> Result<std::unique_ptr<Sink>> {
    return std::make_unique<SkeletonSink>(topic_at(url));
  };
  stream.open_source = [](const std::string& url, bool) -> Result<std::unique_ptr<Source>> {
    return std::make_unique<WholeTopic>(*topic_at(url));
  };
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Skeleton, SinkSuite, ::testing::Values(skeleton_topic()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProducersSuite);

// --- Both

Handler pay() {
  return each([](const Delivery& order, KeyValueTransaction& shop) -> Result<Outcome> {
    const std::string key = "paid " + std::string(order.id);
    ONCE_TRY(shop.put(key, ONCE_TRY(shop.get(key)).value_or("") + "x"));
    ONCE_TRY(shop.enqueue("paid", {.id = std::string(order.id), .key = std::string(order.key)}));
    return applied();
  });
}

TEST(Skeleton, carries_a_pipeline_and_a_relay) {
  constexpr int count = 500;
  const auto queue = std::make_shared<Queue>();
  for (int i = 0; i < count; ++i) {
    const Message order{.id = fmt::format("order {}", i), .key = fmt::format("k{}", i % 5)};
    queue->unread.push_back(order);
    if (i % 10 == 0) queue->unread.push_back(order);  // sent twice
  }
  MemoryStore store(system_clock());
  SkeletonSource source(queue);
  PipelineOptions options;
  options.scope = "shop";
  options.id = IdRule{};
  options.lanes = 4;
  options.batch_count_max = 20;
  options.stop_at_end = true;
  auto pipeline = Pipeline::make(source, store, pay(), options);
  ASSERT_TRUE(pipeline) << pipeline.error().text;
  const Status ran = (*pipeline)->run();
  ASSERT_TRUE(ran) << ran.error().text;
  EXPECT_EQ((*pipeline)->statistics().applied, 500u);
  EXPECT_EQ((*pipeline)->statistics().duplicates, 50u);

  const auto topic = std::make_shared<Topic>(3);
  auto relay = Relay::make(store,
                           [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
                             return std::make_shared<SkeletonSink>(topic);
                           },
                           {.name = "shop"});
  ASSERT_TRUE(relay) << relay.error().text;
  while (true) {
    const auto left = (*relay)->step();
    ASSERT_TRUE(left) << left.error().text;
    if (*left == 0) break;
  }
  std::map<std::string, int> paid;
  for (const auto& partition : topic->partitions)
    for (const Message& message : partition) ++paid[message.id];
  const MemoryState state = store.snapshot();
  for (int i = 0; i < count; ++i) {
    const std::string id = fmt::format("order {}", i);
    EXPECT_EQ(state.values.at("paid " + id), "x") << id;
    EXPECT_EQ(paid[id], 1) << id;
  }
}

}  // namespace
}  // namespace once::testing
