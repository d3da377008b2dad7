// SPDX-License-Identifier: Apache-2.0
#include "testing/memory_queue.h"
#include "streams/queue_suite.h"
#include "testing/random.h"
#include "testing/sim_clock.h"

namespace once::testing {
namespace {

SimClock& queue_clock() {
  static SimClock clock;
  return clock;
}

std::shared_ptr<MemoryQueue>& queue_at(const std::string& url) {
  static std::map<std::string, std::shared_ptr<MemoryQueue>> queues;
  return queues[url];
}

QueueUnderTest queue_with(const std::string& name, const MemoryQueueOptions& options) {
  QueueUnderTest queue;
  queue.name = name;
  queue.new_queue = [options] {
    static int count = 0;
    const std::string url = fmt::format("queue:{}", ++count);
    queue_at(url) = std::make_shared<MemoryQueue>(queue_clock(), options);
    return url;
  };
  queue.send = [](const std::string& url, const std::vector<Message>& messages) {
    for (const Message& message : messages) queue_at(url)->send(message);
  };
  queue.open = [](const std::string& url) -> Result<std::unique_ptr<Source>> {
    return std::make_unique<QueueSource>(queue_at(url));
  };
  queue.cut = [](Source& source) { dynamic_cast<QueueSource&>(source).disconnect(); };
  queue.let_pass_ms = [](std::int64_t ms) { queue_clock().step(ms); };
  return queue;
}

MemoryQueueOptions in_any_order(MemoryQueueOptions options) {
  options.pick = [random = std::make_shared<Random>(7)](std::size_t count) {
    return static_cast<std::size_t>(random->below(count));
  };
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Memory, QueueSuite,
    ::testing::Values(queue_with("plain", {}), queue_with("leases", {.lease_ms = 30'000}),
                      queue_with("limit_and_delays",
                                 {.delay_ms_max = 60'000, .unacknowledged_max = 30}),
                      queue_with("any_order", in_any_order({.lease_ms = 10'000,
                                                            .delay_ms_max = 1'000,
                                                            .unacknowledged_max = 40}))),
    [](const auto& queue) { return queue.param.name; });

}  // namespace
}  // namespace once::testing
