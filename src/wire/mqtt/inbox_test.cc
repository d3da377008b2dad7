// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/inbox.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace once::mqtt {
namespace {

// An inbox, and what a server sends to it and hears from it.
class MqttInbox : public ::testing::Test {
 protected:
  void SetUp() override { inbox_.connected(false); }

  void send_all(std::initializer_list<std::uint16_t> packets, bool duplicate = false) {
    for (const std::uint16_t packet : packets) send(packet, 1, duplicate);
  }
  void send(std::uint16_t packet, std::uint8_t qos = 1, bool duplicate = false) {
    std::string bytes;
    encode(Publish{.qos = qos,
                   .duplicate = duplicate,
                   .packet = packet,
                   .topic = "t",
                   .payload = names_.emplace_back(fmt::format("m{}", packet))},
           Version::v5, bytes);
    FrameReader reader(1 << 20);
    reader.add(bytes);
    ASSERT_TRUE(inbox_.arrived(std::move(*reader.next().value()), 7));
  }
  std::vector<Delivery> take(std::size_t count_max = 100) {
    inbox_.take(count_max, now_ms_, batches_.emplace_back());
    return batches_.back().deliveries;
  }
  static std::vector<std::string> bodies(const std::vector<Delivery>& deliveries) {
    std::vector<std::string> found;
    for (const Delivery& delivery : deliveries) found.emplace_back(delivery.body);
    return found;
  }
  // "puback 1", ... as they are sent.
  std::vector<std::string> heard() {
    FrameReader reader(1 << 20);
    reader.add(inbox_.take_answers());
    std::vector<std::string> found;
    while (const auto frame = reader.next().value()) {
      const auto answer = std::get<Answer>(decode(*frame, Version::v5).value());
      const char* const name = answer.type == PacketType::puback   ? "puback"
                               : answer.type == PacketType::pubrec ? "pubrec"
                                                                   : "pubcomp";
      found.push_back(
          fmt::format("{} {}{}", name, answer.packet, answer.reason != 0 ? " not found" : ""));
    }
    return found;
  }
  using Words = std::vector<std::string>;

  std::deque<std::string> names_;
  std::deque<Batch> batches_;
  std::int64_t now_ms_ = 1000;
  Inbox inbox_{Version::v5, true, "t"};
};

TEST_F(MqttInbox, answers_go_out_in_the_order_of_receipt) {
  send_all({5, 3, 9, 4});
  const auto taken = take();
  EXPECT_EQ(bodies(taken), (Words{"m5", "m3", "m9", "m4"}));
  inbox_.ack(taken[1]);
  inbox_.ack(taken[2]);
  EXPECT_EQ(heard(), Words{}) << "the first is not done";
  EXPECT_EQ(inbox_.delivered(), 2u);
  inbox_.ack(taken[0]);
  EXPECT_EQ(heard(), (Words{"puback 5", "puback 3", "puback 9"}));
  inbox_.ack(taken[0]);
  inbox_.ack(taken[3]);
  EXPECT_EQ(heard(), Words{"puback 4"});
  EXPECT_TRUE(inbox_.empty());
}

TEST_F(MqttInbox, of_qos_2_a_copy_that_was_answered_is_not_delivered_again) {
  send(1, 2);
  inbox_.ack(take()[0]);
  EXPECT_EQ(heard(), Words{"pubrec 1"});
  // The answer got lost: the same session goes on.
  inbox_.disconnected();
  inbox_.connected(true);
  send(1, 2, true);
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(heard(), Words{"pubrec 1"});
  inbox_.released(1);
  inbox_.released(1);
  EXPECT_EQ(heard(), (Words{"pubcomp 1", "pubcomp 1 not found"}));
  send(1, 2);
  EXPECT_EQ(take().size(), 1u) << "the identifier is used again";
}

TEST_F(MqttInbox, with_a_new_session_identifiers_mean_other_messages) {
  send(1, 2);
  inbox_.ack(take()[0]);
  inbox_.disconnected();
  inbox_.connected(false);
  send(1, 2);
  EXPECT_EQ(take().size(), 1u);
}

TEST_F(MqttInbox, of_a_lost_connection_nothing_is_answered_or_given_back) {
  send_all({1, 2, 3});
  const auto old = take(2);
  inbox_.disconnected();
  EXPECT_TRUE(inbox_.empty()) << "the broker sends all of it again";
  inbox_.connected(true);
  send_all({1, 2, 3}, true);
  inbox_.ack(old[0]);
  inbox_.release(old[1], 0);
  EXPECT_EQ(heard(), Words{});
  const auto now = take();
  EXPECT_EQ(bodies(now), (Words{"m1", "m2", "m3"}));
  EXPECT_EQ(now[0].attempt, 2u);
  EXPECT_NE(now[0].session, old[0].session);
}

TEST_F(MqttInbox, what_is_released_comes_again_when_it_is_due_under_another_tag) {
  send(1);
  send(2);
  const auto taken = take();
  inbox_.release(taken[0], 2000);
  EXPECT_EQ(inbox_.next_ready_ms(), 2000);
  EXPECT_TRUE(take().empty());
  inbox_.ack(taken[1]);
  now_ms_ = 2000;
  const auto again = take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 2u);
  EXPECT_NE(again[0].offset, taken[0].offset);
  inbox_.ack(taken[0]);
  EXPECT_EQ(heard(), Words{}) << "that was its first delivery";
  inbox_.ack(again[0]);
  EXPECT_EQ(heard(), (Words{"puback 1", "puback 2"}));
}

// Nobody else has them.
TEST_F(MqttInbox, messages_of_qos_0_outlive_the_connection) {
  send(0, 0);
  send(1);
  send(0, 0);
  const auto taken = take(1);
  inbox_.disconnected();
  inbox_.connected(true);
  EXPECT_EQ(take().size(), 1u) << "the one that was not delivered";
  inbox_.release(taken[0], 0);
  const auto again = take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].attempt, 2u);
  EXPECT_EQ(heard(), Words{});
}

TEST_F(MqttInbox, a_copy_on_the_same_connection_is_under_way_already) {
  send(1);
  send(1, 1, true);
  const auto taken = take();
  EXPECT_EQ(taken.size(), 1u);
  inbox_.ack(taken[0]);
  send(1);
  EXPECT_EQ(take().size(), 1u) << "answered: the identifier is free";
}

TEST_F(MqttInbox, what_waits_here_has_a_limit) {
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(inbox_.has_room());
    send(0, 0);
  }
  EXPECT_FALSE(inbox_.has_room());
  take(1);
  EXPECT_TRUE(inbox_.has_room());
}

}  // namespace
}  // namespace once::mqtt
