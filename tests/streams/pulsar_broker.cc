// SPDX-License-Identifier: Apache-2.0
#include "streams/pulsar_broker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>

#include "wire/pulsar/adapter.h"
#include "wire/pulsar/queue_source.h"

namespace once::testing {

LiveServer& pulsar_broker() {
  static LiveServer pulsar("pulsar");
  return pulsar;
}

std::string pulsar_url(const LiveServer& server, const std::string& path) {
  const auto question = server.url().find('?');
  return server.url().substr(0, question) + "/" + path + server.url().substr(question);
}

std::string pulsar_topic_at(const LiveServer& server, const std::string& name,
                            std::uint32_t partitions) {
  const std::string url = pulsar_url(server, name);
  const Status made = pulsar::adapter().topics->create(url, {.partitions = partitions});
  EXPECT_TRUE(made) << made.error().text;
  return url;
}

std::string pulsar_topic(std::uint32_t partitions) {
  static std::atomic<int> count{0};
  return pulsar_topic_at(pulsar_broker(), fmt::format("topic{}", ++count), partitions);
}

void cut_pulsar_source(Source& source) {
  dynamic_cast<pulsar::QueueSource&>(source).cut_connections();
}

}  // namespace once::testing
