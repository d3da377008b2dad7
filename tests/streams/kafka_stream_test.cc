// SPDX-License-Identifier: Apache-2.0
#include "streams/kafka_cluster.h"
#include "streams/sink_suite.h"
#include "streams/source_suite.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer kafka("kafka");
  return kafka;
}

std::string hosts() { return fmt::format("127.0.0.1:{}", server().port()); }

std::string new_topic(std::uint32_t partitions) {
  static int count = 0;
  const std::string topic = fmt::format("topic{}", ++count);
  create_kafka_topic(hosts(), topic, partitions);
  return server().url() + "/" + topic;
}

StreamUnderTest kafka_stream() {
  StreamUnderTest stream;
  stream.name = "kafka";
  stream.new_topic = new_topic;
  stream.open_sink = [](const std::string& url) { return open_kafka_sink(url); };
  stream.open_source = [](const std::string& url, bool bounded) {
    return open_kafka_source(url + (bounded ? "?end=stop" : ""));
  };
  stream.dense_offsets = false;  // the ends of transactions have offsets too
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Kafka, SinkSuite, ::testing::Values(kafka_stream()));
INSTANTIATE_TEST_SUITE_P(Kafka, SourceSuite, ::testing::Values(kafka_stream()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
