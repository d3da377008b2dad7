// SPDX-License-Identifier: Apache-2.0
// Pulsar goes through the suites of sinks, sources and queues, on a real broker.
#include <atomic>
#include <thread>

#include "streams/pulsar_broker.h"
#include "streams/queue_suite.h"
#include "streams/sink_suite.h"
#include "streams/source_suite.h"

namespace once::testing {
namespace {

StreamUnderTest pulsar_stream() {
  StreamUnderTest stream;
  stream.name = "pulsar";
  stream.new_topic = [](std::uint32_t partitions) { return pulsar_topic(partitions); };
  stream.open_sink = [](const std::string& url) { return open_pulsar_sink(url); };
  stream.open_source = [](const std::string& url, bool bounded) {
    return open_pulsar_source(url + (bounded ? "&end=stop" : ""));
  };
  stream.dense_offsets = false;  // ledger, entry and place in the entry
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Pulsar, SinkSuite, ::testing::Values(pulsar_stream()));
INSTANTIATE_TEST_SUITE_P(Pulsar, ProducersSuite, ::testing::Values(pulsar_stream()));
INSTANTIATE_TEST_SUITE_P(Pulsar, SourceSuite, ::testing::Values(pulsar_stream()));

// The same with a subscription, which says what is ours and keeps what is not handled.
StreamUnderTest pulsar_subscription(const std::string& type) {
  StreamUnderTest stream = pulsar_stream();
  stream.name = type;
  stream.open_source = [type](const std::string& url, bool bounded) {
    static std::atomic<int> count{0};
    return open_pulsar_source(fmt::format("{}&subscription=s{}&type={}{}", url, ++count, type,
                                          bounded ? "&end=stop" : ""));
  };
  return stream;
}

INSTANTIATE_TEST_SUITE_P(PulsarSubscription, SourceSuite,
                         ::testing::Values(pulsar_subscription("failover"),
                                           pulsar_subscription("exclusive")),
                         ::testing::PrintToStringParamName());

// --- Subscriptions that are shared

void send_to(const std::string& url, const std::vector<Message>& messages) {
  if (messages.empty()) return;
  auto sink = open_pulsar_sink(url.substr(0, url.find("&subscription"))).value();
  const Stamp stamp = sink->producers()->enter(0, "shop").value();
  const auto sent = sink->append(0, stamp, messages);
  ASSERT_TRUE(sent) << sent.error().text;
}

QueueUnderTest pulsar_queue(const std::string& type) {
  QueueUnderTest queue;
  queue.name = type;
  queue.new_queue = [type] { return pulsar_topic() + "&subscription=jobs&type=" + type; };
  queue.send = send_to;
  queue.open = [](const std::string& url) { return open_pulsar_source(url); };
  queue.cut = [](Source& source) { cut_pulsar_source(source); };
  queue.let_pass_ms = [](std::int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  };
  queue.knows_closed_sessions = false;
  return queue;
}

INSTANTIATE_TEST_SUITE_P(Pulsar, QueueSuite,
                         ::testing::Values(pulsar_queue("shared"), pulsar_queue("key_shared")),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::pulsar_broker());
}
