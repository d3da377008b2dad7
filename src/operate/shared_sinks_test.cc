// SPDX-License-Identifier: Apache-2.0
#include "operate/shared_sinks.h"

#include <gtest/gtest.h>
#include <once/log.h>
#include <once/open.h>

#include "testing/scratch.h"

namespace once::operate {
namespace {

class SharedSinksTest : public ::testing::Test {
 protected:
  SharedSinksTest() { EXPECT_TRUE(create_topic(directory_.path("log"), "done", {})); }
  std::string topic() const { return "file:" + directory_.path("log/done"); }

  testing::Scratch directory_;
  SharedSinks sinks_;
};

TEST_F(SharedSinksTest, two_producers_write_a_topic_at_the_same_time) {
  const auto first = sinks_.open(topic()).value();
  const auto second = sinks_.open("file:" + directory_.path("log/../log/done")).value();
  EXPECT_EQ(first, second) << "however its URL is written";
  const Stamp one = first->producers()->enter(0, "one").value();
  const Stamp other = second->producers()->enter(0, "other").value();
  const std::vector<Message> messages{{.id = "a"}};
  EXPECT_EQ(first->append(0, one, messages).value().offset, 0);
  EXPECT_EQ(second->append(0, other, messages).value().offset, 1);
  EXPECT_EQ(first->append(0, one, messages).value().duplicates, 1u);
}

// A relay asks for both to find out that another store has written under its name.
TEST_F(SharedSinksTest, what_a_topic_knows_of_a_producer_is_answered) {
  const auto topic_sink = sinks_.open(topic()).value();
  const Stamp stamp = topic_sink->producers()->enter(0, "one").value();
  const std::vector<Message> messages{{.id = "a"}, {.id = "b"}};
  ASSERT_TRUE(topic_sink->append(0, stamp, messages));
  EXPECT_EQ(topic_sink->producers()->sent_by(0, "one").value(), 2u);
  EXPECT_EQ(topic_sink->producers()->last_digest(0, "one").value(), digest_of(messages.back()));
}

TEST_F(SharedSinksTest, a_topic_is_closed_when_nobody_writes_it) {
  auto first = sinks_.open(topic()).value();
  EXPECT_FALSE(open_sink(topic())) << "a topic has one writer";
  first.reset();
  EXPECT_TRUE(open_sink(topic()));
}

TEST_F(SharedSinksTest, a_refused_message_closes_nothing) {
  const auto first = sinks_.open(topic()).value();
  const Stamp stamp = first->producers()->enter(0, "one").value();
  const std::vector<Message> refused{{.id = "a", .body = std::string(64 << 20, 'x')}};
  const auto receipt = first->append(0, stamp, refused);
  ASSERT_FALSE(receipt);
  EXPECT_EQ(receipt.error().remedy, Remedy::park) << receipt.error().text;
  EXPECT_FALSE(open_sink(topic())) << "other relays go on writing it";
}

TEST_F(SharedSinksTest, a_writer_that_failed_is_opened_again_for_all) {
  const auto first = sinks_.open(topic()).value();
  const auto idle = sinks_.open(topic()).value();
  EXPECT_FALSE(first->producers()->enter(7, "one")) << "there is no such partition";
  EXPECT_TRUE(open_sink(topic())) << "nobody holds the topic, although both are there";
  EXPECT_TRUE(idle->producers()->enter(0, "one"));
}

}  // namespace
}  // namespace once::operate
