// SPDX-License-Identifier: Apache-2.0
// A source whose connection to a real Kafka is interrupted, and a pipeline that starts again, go on
// where they were, if that is still there: nothing is skipped or repeated, and a topic that is
// another one by then is an error.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/memory/memory.h"
#include "streams/kafka_cluster.h"
#include "testing/live_server.h"
#include "wire/kafka/topics.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer kafka("kafka", {.settings = {"log.cleaner.backoff.ms=200"}});
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
  void send(const std::string& shop, int from, int to) { send_to(url_, shop, from, to); }
  void send_to(const std::string& url, const std::string& shop, int from, int to) {
    auto opened = open_kafka_sink(url);
    // A topic that was just created is not known everywhere yet.
    for (int i = 0; !opened && i < 100; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      opened = open_kafka_sink(url);
    }
    ASSERT_TRUE(opened) << opened.error().text;
    const auto& sink = *opened;
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

  // The partition has the messages of another topic. Its files stay those of the server's user.
  void put_messages_of(const std::string& other) const {
    namespace fs = std::filesystem;
    const fs::path here = server().path("data/" + topic_ + "-0");
    const fs::path there = server().path("data/" + other + "-0");
    for (const fs::path& file : std::vector<fs::path>(fs::directory_iterator(here), {}))
      if (file.extension() == ".log")
        fs::copy_file(there / file.filename(), file, fs::copy_options::overwrite_existing);
      else if (file.extension() != ".metadata")
        fs::remove(file);
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
  EXPECT_EQ(after.error().text.find("once "), std::string::npos) << after.error().text;
  EXPECT_EQ(read_.size(), 20u) << read_.back();
}

// The broker comes back with other messages: every offset exists, but where the last message was is
// a transaction that was aborted, and nothing comes behind it.
TEST_F(KafkaInterruption, by_a_broker_whose_topic_ends_with_a_transaction_then_is_gone) {
  const std::string other = topic_ + "again";
  const std::string hosts = fmt::format("127.0.0.1:{}", server().port());
  create_kafka_topic(hosts, other, 1);
  send_to(server().url() + "/" + other, "other", 100, 118);
  abort_kafka_transaction(hosts, other, "nobody sees it, and its end is the last offset");
  send("before", 0, 20);
  source_ = open_kafka_source(url_ + "?end=stop").value();
  const Status before = read(20);
  ASSERT_TRUE(before) << before.error().text;
  server().kill();
  put_messages_of(other);
  server().start();
  const Status after = read(21);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().tag, "gone") << after.error().text;
  EXPECT_EQ(read_.size(), 20u) << read_.back();
}

// A pipeline that ends with its topic and is started again.
class KafkaPosition : public KafkaInterruption {
 protected:
  KafkaPosition() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.stop_at_end = true;
  }
  Status run() {
    const auto source = ONCE_TRY(open_kafka_source(url_ + "?end=stop"));
    const auto pipeline = ONCE_TRY(Pipeline::make(
        *source, store_, each([&](const Delivery& delivery, Transaction&) -> Result<Outcome> {
          handled_.emplace_back(delivery.id);
          return applied();
        }),
        options_));
    return pipeline->run();
  }
  void create_again() {
    const Status gone = kafka::delete_topic(url_);
    ASSERT_TRUE(gone) << gone.error().text;
    create_kafka_topic(fmt::format("127.0.0.1:{}", server().port()), topic_, 1);
    sent_.clear();
  }
  void expect_gone() {
    const Status refused = run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "gone") << refused.error().text;
    EXPECT_EQ(handled_.size(), 3u);
    ASSERT_TRUE(store_.repairs()->correct("shop", SetPosition{topic_ + "/0", -1}, "made anew"));
    handled_.clear();
    const Status again = run();
    EXPECT_TRUE(again) << again.error().text;
    EXPECT_EQ(handled_, sent_);
  }

  MemoryStore store_{system_clock()};
  PipelineOptions options_;
  std::vector<std::string> handled_;
};

// Where the last handled message was, the new topic has the end of a transaction.
TEST_F(KafkaPosition, is_gone_if_the_topic_has_the_end_of_a_transaction_there) {
  send("before", 0, 3);
  const Status before = run();
  ASSERT_TRUE(before) << before.error().text;
  EXPECT_EQ(handled_, sent_);
  create_again();
  send("after", 100, 102);
  send("after", 102, 110);
  expect_gone();
}

TEST_F(KafkaPosition, is_gone_if_the_topic_ends_there_with_a_transaction) {
  send("before", 0, 3);
  const Status before = run();
  ASSERT_TRUE(before) << before.error().text;
  create_again();
  send("after", 100, 102);
  expect_gone();
}

// Kafka may remove the last handled message: that is not another topic.
TEST_F(KafkaPosition, holds_if_the_handled_message_was_compacted) {
  topic_ = "compacted";
  url_ = server().url() + "/" + topic_;
  create_kafka_topic(fmt::format("127.0.0.1:{}", server().port()), topic_, 1,
                     {{"cleanup.policy", "compact"},
                      {"segment.ms", "100"},
                      {"min.cleanable.dirty.ratio", "0.01"}});
  const auto send_one = [&](int number, const std::string& key) {
    auto sink = open_kafka_sink(url_).value();
    const Message message{.id = fmt::format("order {}", number), .key = key, .body = "body"};
    const auto stamp = sink->producers()->enter(0, fmt::format("shop {}", number)).value();
    ASSERT_TRUE(sink->append(0, stamp, std::span(&message, 1)));
    sent_.push_back(message.id);
  };
  send_one(0, "a");
  send_one(1, "b");  // at offset 2
  const Status before = run();
  ASSERT_TRUE(before) << before.error().text;
  const std::int64_t witness = store_.position("shop", topic_ + "/0").value().witness.offset;
  int number = 2;
  send_one(number++, "b");
  const auto is_there = [&] {
    return kafka::first_messages(url_, {{0, witness}}).value().at(0) == witness;
  };
  for (; is_there() && number < 30; ++number) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    send_one(number, fmt::format("key {}", number));
  }
  ASSERT_FALSE(is_there()) << "Kafka has not compacted the topic";
  const Status after = run();
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(handled_, sent_);
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
