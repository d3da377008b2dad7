// SPDX-License-Identifier: Apache-2.0
#include "streams/sink_suite.h"
#include "streams/source_suite.h"
#include "testing/scratch.h"

namespace once::testing {
namespace {

StreamUnderTest log_stream() {
  static Scratch scratch;
  StreamUnderTest stream;
  stream.name = "log";
  stream.new_topic = [](std::uint32_t partitions) {
    static int count = 0;
    const std::string topic = fmt::format("topic{}", ++count);
    TopicOptions options;
    options.partitions = partitions;
    EXPECT_TRUE(create_topic(scratch.directory(), topic, options));
    return topic;
  };
  stream.open_sink = [](const std::string& topic) {
    return open_log_sink(scratch.directory(), topic);
  };
  stream.open_source = [](const std::string& topic, bool bounded) {
    return open_log_source(scratch.directory(), topic, {.stop_at_end = bounded});
  };
  stream.one_writing_process = true;
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Log, SinkSuite, ::testing::Values(log_stream()));
INSTANTIATE_TEST_SUITE_P(Log, ProducersSuite, ::testing::Values(log_stream()));
INSTANTIATE_TEST_SUITE_P(Log, SourceSuite, ::testing::Values(log_stream()));

}  // namespace
}  // namespace once::testing
