// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/flight.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/mqtt/error.h"

namespace once::mqtt {
namespace {

constexpr std::size_t any_size = 1 << 20;

std::vector<Message> messages(int count) {
  std::vector<Message> made;
  for (int i = 0; i < count; ++i) made.push_back({.id = fmt::format("{}", i), .body = "{}"});
  return made;
}

Flight::Settings settings(std::uint8_t qos) {
  return {.topic = "t", .qos = qos, .where = "mqtt://h/t"};
}

Answer answer(PacketType type, std::uint16_t packet, std::uint8_t reason = 0) {
  return {.type = type, .packet = packet, .reason = reason};
}

// "publish 1", "again 1", "pubrel 1", ... as they are sent.
std::vector<std::string> sent(const std::string& bytes) {
  FrameReader reader(any_size);
  reader.add(bytes);
  std::vector<std::string> found;
  while (const auto frame = reader.next().value()) {
    const Packet packet = decode(*frame, Version::v5).value();
    if (const auto* const publish = std::get_if<Publish>(&packet))
      found.push_back(
          fmt::format("{} {}", publish->duplicate ? "again" : "publish", publish->packet));
    else
      found.push_back(fmt::format("pubrel {}", std::get<Answer>(packet).packet));
  }
  return found;
}
using Words = std::vector<std::string>;

TEST(MqttFlight, as_many_as_the_broker_allows_are_under_way) {
  const auto all = messages(4);
  const Flight::Settings how = settings(1);
  Flight flight(how, all);
  std::string bytes;
  flight.next(any_size, 2, bytes);
  EXPECT_EQ(sent(bytes), (Words{"publish 1", "publish 2"}));
  EXPECT_TRUE(flight.may_be_there());
  bytes.clear();
  flight.answered(answer(PacketType::puback, 2), bytes);
  flight.next(any_size, 2, bytes);
  EXPECT_EQ(sent(bytes), Words{"publish 3"});
  for (const std::uint16_t packet :
       {std::uint16_t{1}, std::uint16_t{3}, std::uint16_t{3}, std::uint16_t{99}})
    flight.answered(answer(PacketType::puback, packet), bytes);
  bytes.clear();
  flight.next(any_size, 2, bytes);
  EXPECT_FALSE(flight.done());
  flight.answered(answer(PacketType::puback, 4), bytes);
  EXPECT_TRUE(flight.done());
  EXPECT_TRUE(flight.outcome().value().refused.empty());
}

TEST(MqttFlight, of_qos_2_only_the_last_answer_ends_it) {
  const auto all = messages(1);
  const Flight::Settings how = settings(2);
  Flight flight(how, all);
  std::string bytes;
  flight.next(any_size, 9, bytes);
  bytes.clear();
  flight.answered(answer(PacketType::pubrec, 1), bytes);
  EXPECT_EQ(sent(bytes), Words{"pubrel 1"});
  EXPECT_FALSE(flight.done());
  flight.answered(answer(PacketType::pubcomp, 1), bytes);
  EXPECT_TRUE(flight.done());
}

TEST(MqttFlight, in_the_same_session_it_goes_on_where_it_was) {
  const auto all = messages(3);
  const Flight::Settings how = settings(2);
  Flight flight(how, all);
  std::string bytes;
  flight.next(any_size, 9, bytes);
  flight.answered(answer(PacketType::pubrec, 1), bytes);
  flight.answered(answer(PacketType::pubrec, 2), bytes);
  flight.answered(answer(PacketType::pubcomp, 2), bytes);
  bytes.clear();
  flight.resend(true, any_size, bytes);
  EXPECT_EQ(sent(bytes), (Words{"pubrel 1", "again 3"}));
  bytes.clear();
  flight.resend(false, any_size, bytes);
  EXPECT_EQ(sent(bytes), (Words{"publish 1", "publish 3"})) << "a new session knows nothing";
}

TEST(MqttFlight, what_the_broker_refuses_is_named) {
  auto all = messages(4);
  all[1].body->assign(5000, 'x');
  const Flight::Settings how = settings(1);
  Flight flight(how, all);
  std::string bytes;
  flight.next(1000, 9, bytes);
  EXPECT_EQ(sent(bytes).size(), 3u);
  flight.answered(answer(PacketType::puback, 1), bytes);
  flight.answered(answer(PacketType::puback, 3, 0x87), bytes);
  flight.answered(answer(PacketType::puback, 4, no_subscribers_reason), bytes);
  ASSERT_TRUE(flight.done());
  const Receipt receipt = flight.outcome().value();
  ASSERT_EQ(receipt.refused.size(), 3u);
  EXPECT_EQ(receipt.refused[0].message, 1u);
  EXPECT_EQ(receipt.refused[0].why.tag, "too_large");
  EXPECT_EQ(receipt.refused[1].why.tag, "denied");
  EXPECT_EQ(receipt.refused[2].why.tag, "unroutable");
}

TEST(MqttFlight, where_the_broker_takes_nothing_all_can_be_sent_again) {
  const auto all = messages(2);
  for (const std::uint8_t qos : {std::uint8_t{1}, std::uint8_t{2}}) {
    const Flight::Settings how = settings(qos);
    Flight flight(how, all);
    std::string bytes;
    flight.next(any_size, 9, bytes);
    const PacketType first = qos == 1 ? PacketType::puback : PacketType::pubrec;
    for (const std::uint16_t packet : {std::uint16_t{1}, std::uint16_t{2}}) {
      flight.answered(answer(first, packet, no_subscribers_reason), bytes);
      if (qos == 2) flight.answered(answer(PacketType::pubcomp, packet), bytes);
    }
    ASSERT_TRUE(flight.done());
    EXPECT_FALSE(flight.may_be_there());
    const auto outcome = flight.outcome();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().remedy, Remedy::retry);
    EXPECT_EQ(outcome.error().tag, "unroutable");
  }
  Flight::Settings how = settings(1);
  how.needs_subscribers = false;
  Flight flight(how, all);
  std::string bytes;
  flight.next(any_size, 9, bytes);
  for (const std::uint16_t packet : {std::uint16_t{1}, std::uint16_t{2}})
    flight.answered(answer(PacketType::puback, packet, no_subscribers_reason), bytes);
  EXPECT_TRUE(flight.outcome().value().refused.empty());
}

}  // namespace
}  // namespace once::mqtt
