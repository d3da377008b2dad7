// SPDX-License-Identifier: Apache-2.0
// RabbitMQ through the suites of queues and of sinks, on a real server.
#include <thread>

#include "model/forwarding_sink.h"
#include "streams/queue_suite.h"
#include "streams/rabbitmq_home.h"
#include "streams/sink_suite.h"
#include "wire/rabbitmq/source.h"

namespace once::testing {
namespace {

void send_to(const std::string& url, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  auto sink = rabbitmq_adapter().sink(url).value();
  const auto receipt = sink->append(0, {}, messages);
  ASSERT_TRUE(receipt) << receipt.error().text;
  ASSERT_TRUE(receipt->refused.empty()) << receipt->refused.front().why.text;
}

QueueUnderTest queue_of(const std::string& type, const std::string& parameters) {
  QueueUnderTest queue;
  queue.name = type + (parameters.empty() ? "" : "_few");
  queue.new_queue = [type] { return new_rabbitmq_queue(type); };
  queue.send = send_to;
  queue.open = [parameters](const std::string& url) {
    return rabbitmq_adapter().source(url + parameters);
  };
  queue.cut = [](Source& source) { dynamic_cast<rabbitmq::QueueSource&>(source).cut(); };
  queue.let_pass_ms = [](std::int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::int64_t>(ms, 200)));
  };
  queue.counts_attempts = type == "quorum";
  return queue;
}

INSTANTIATE_TEST_SUITE_P(RabbitMq, QueueSuite,
                         ::testing::Values(queue_of("quorum", ""), queue_of("classic", ""),
                                           queue_of("quorum", "&prefetch=30"),
                                           queue_of("classic", "&prefetch=30")),
                         [](const auto& queue) { return queue.param.name; });

StreamUnderTest sink_to(const std::string& type) {
  StreamUnderTest stream;
  stream.name = type;
  stream.new_topic = [type](std::uint32_t) { return new_rabbitmq_queue(type); };
  stream.open_sink = [](const std::string& url) { return rabbitmq_adapter().sink(url); };
  stream.open_source = [](const std::string& url, bool bounded) {
    return rabbitmq_adapter().source(url + (bounded ? "&end=stop" : ""));
  };
  stream.tells_offsets = false;
  stream.partitions_max = 1;
  stream.dense_offsets = false;
  return stream;
}

// RabbitMQ recognises no resends.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProducersSuite);
INSTANTIATE_TEST_SUITE_P(RabbitMq, SinkSuite,
                         ::testing::Values(sink_to("quorum"), sink_to("classic")),
                         [](const auto& stream) { return stream.param.name; });

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::rabbitmq_server());
}
