// SPDX-License-Identifier: Apache-2.0
// A source whose connection to a real Kafka is interrupted goes on where it was, if that is still
// there: nothing is skipped or repeated, and a topic that is another one by then is an error.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "streams/kafka_cluster.h"
#include "testing/live_server.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer kafka("kafka");
  return kafka;
}

class KafkaInterruption : public ::testing::Test {
 protected:
  void SetUp() override {
    static int topics = 0;
    topic_ = fmt::format("interrupted{}", ++topics);
    create_kafka_topic(fmt::format("127.0.0.1:{}", server().port()), topic_, 1);
    url_ = server().url() + "/" + topic_;
  }

  // With a producer of its own each time: a restored broker does not know the one before.
  void send(const std::string& shop, int from, int to) {
    auto sink = open_kafka_sink(url_).value();
    std::vector<Message> messages;
    for (int i = from; i < to; ++i) messages.push_back({.id = fmt::format("order {}", i)});
    const auto done = sink->append(0, sink->producers()->enter(0, shop).value(), messages);
    ASSERT_TRUE(done) << done.error().text;
    for (Message& message : messages) sent_.push_back(std::move(message.id));
  }

  // Polls until so many messages were read in all, or there is an error.
  Status read(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (read_.size() < count) {
      if (std::chrono::steady_clock::now() > deadline)
        return fail(Remedy::stop, "late", fmt::format("{} messages", read_.size()));
      const Batch batch = ONCE_TRY(source_->poll(7, 50));
      if (batch.event == Batch::Event::assigned)
        ONCE_TRY(source_->replay()->seek(batch.partition, -1));
      for (const Delivery& delivery : batch.deliveries) read_.emplace_back(delivery.id);
    }
    return {};
  }

  std::string topic_;
  std::string url_;
  std::unique_ptr<Source> source_;
  std::vector<std::string> sent_;
  std::vector<std::string> read_;
};

TEST_F(KafkaInterruption, by_a_restart_of_the_broker_skips_and_repeats_nothing) {
  send("before", 0, 20);
  source_ = open_kafka_source(url_).value();
  const Status before = read(20);
  ASSERT_TRUE(before) << before.error().text;
  server().kill();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(source_->poll(7, 50)) << "it waits for the broker";
  server().start();
  send("after", 20, 60);
  const Status after = read(60);
  ASSERT_TRUE(after) << after.error().text;
  for (int i = 0; i < 10; ++i) {
    const auto batch = source_->poll(7, 50);
    ASSERT_TRUE(batch) << batch.error().text;
    EXPECT_TRUE(batch->deliveries.empty());
  }
  EXPECT_EQ(read_, sent_);
}

TEST_F(KafkaInterruption, by_a_broker_that_comes_back_without_its_messages_is_gone) {
  send("before", 0, 20);
  source_ = open_kafka_source(url_).value();
  const Status before = read(20);
  ASSERT_TRUE(before) << before.error().text;
  server().kill();
  std::filesystem::remove_all(server().path("data/" + topic_ + "-0"));
  server().start();
  send("after", 100, 160);  // more than were there, so that every offset exists again
  const Status after = read(60);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().tag, "gone") << after.error().text;
  EXPECT_NE(after.error().text.find("once position set"), std::string::npos);
  EXPECT_EQ(read_.size(), 20u) << read_.back();
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
