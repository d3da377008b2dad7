// SPDX-License-Identifier: Apache-2.0
#include "streams/pulsar_broker.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "net/stream.h"
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

std::string pulsar_topic_at_url(const std::string& url, std::uint32_t partitions) {
  const Status made = pulsar::adapter().topics->create(url, {.partitions = partitions});
  EXPECT_TRUE(made) << made.error().text;
  return url;
}

std::string pulsar_topic_at(const LiveServer& server, const std::string& name,
                            std::uint32_t partitions) {
  return pulsar_topic_at_url(pulsar_url(server, name), partitions);
}

std::string pulsar_topic(std::uint32_t partitions) {
  static std::atomic<int> count{0};
  return pulsar_topic_at(pulsar_broker(), fmt::format("topic{}", ++count), partitions);
}

void pulsar_admin(const LiveServer& server, const std::string& method, const std::string& path,
                  const std::string& body) {
  const Endpoint web{
      "127.0.0.1",
      static_cast<std::uint16_t>(std::stoul(server.url().substr(server.url().rfind(':') + 1)))};
  const net::Deadline deadline = net::in_ms(30'000);
  const auto stream = net::Stream::connect(web, std::nullopt, deadline).value();
  ASSERT_TRUE(stream->write(fmt::format("{} /admin/v2/{} HTTP/1.0\r\nContent-Type: "
                                        "application/json\r\nContent-Length: {}\r\n\r\n{}",
                                        method, path, body.size(), body),
                            deadline));
  std::array<char, 1024> answer{};
  ASSERT_TRUE(stream->read(answer.data(), answer.size() - 1, deadline));
  EXPECT_EQ(std::string_view(answer.data()).substr(9, 1), "2") << answer.data();
}

void cut_pulsar_source(Source& source) {
  dynamic_cast<pulsar::QueueSource&>(source).cut_connections();
}

}  // namespace once::testing
