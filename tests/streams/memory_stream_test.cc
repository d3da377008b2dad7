// SPDX-License-Identifier: Apache-2.0
#include "streams/memory_topic.h"
#include "streams/sink_suite.h"
#include "streams/source_suite.h"

namespace once::testing {
namespace {

std::shared_ptr<MemoryTopic>& topic_at(const std::string& url) {
  static std::map<std::string, std::shared_ptr<MemoryTopic>> topics;
  return topics[url];
}

// Without producers: a resend is not recognised.
StreamUnderTest memory_stream() {
  StreamUnderTest stream;
  stream.name = "memory";
  stream.new_topic = [](std::uint32_t partitions) {
    static int count = 0;
    const std::string url = fmt::format("topic:{}", ++count);
    topic_at(url) = std::make_shared<MemoryTopic>(partitions);
    return url;
  };
  stream.open_sink = [](const std::string& url) -> Result<std::unique_ptr<Sink>> {
    return std::make_unique<MemoryTopicSink>(topic_at(url));
  };
  stream.open_source = [](const std::string& url, bool bounded) -> Result<std::unique_ptr<Source>> {
    return std::make_unique<MemoryTopicSource>(topic_at(url), bounded);
  };
  return stream;
}

INSTANTIATE_TEST_SUITE_P(Memory, SinkSuite, ::testing::Values(memory_stream()));
INSTANTIATE_TEST_SUITE_P(Memory, SourceSuite, ::testing::Values(memory_stream()));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProducersSuite);

}  // namespace
}  // namespace once::testing
