// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/producer.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/memory_sink.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::MemorySink;
using testing::SimClock;

std::vector<Message> some(std::size_t count, std::size_t from = 0) {
  std::vector<Message> messages;
  for (std::size_t i = from; i < from + count; ++i)
    messages.push_back({.id = "m" + std::to_string(i),
                        .key = "k" + std::to_string(i % 7),
                        .body = "b",
                        .headers = {},
                        .timestamp_ms = 0});
  return messages;
}

// Every id once, and those of one partition in the order they were sent.
void expect_each_once(const MemorySink& sink, std::uint32_t partitions, std::size_t count) {
  std::set<std::string> ids;
  for (std::uint32_t p = 0; p < partitions; ++p) {
    long last = -1;
    for (const Message& message : sink.messages(p)) {
      EXPECT_TRUE(ids.insert(message.id).second) << message.id << " is there twice";
      const long number = std::stol(message.id.substr(1));
      EXPECT_GT(number, last) << "out of order";
      last = number;
    }
  }
  EXPECT_EQ(ids.size(), count);
}

TEST(Producer, sends_each_message_once_to_the_partition_of_its_key) {
  MemorySink sink(3);
  SimClock clock;
  auto producer = Producer::open(sink, {.name = "shop"}, clock).value();
  EXPECT_EQ(producer->send(some(100)).value().sent, 100u);
  expect_each_once(sink, 3, 100);
  EXPECT_EQ(sink.messages(partition_of(some(1)[0], 3))[0].timestamp_ms, clock.now_ms());
}

TEST(Producer, a_lost_answer_leads_to_a_resend_that_is_known) {
  MemorySink sink(1);
  int lost = 2;
  sink.set_faults({}, [&]() -> Status {
    if (lost-- > 0) return fail(Remedy::recheck, "lost", "the answer is lost");
    return {};
  });
  SimClock clock;
  auto producer = Producer::open(sink, {.name = "shop", .backoff_ms = 0}, clock).value();
  const SendReport report = producer->send(some(10)).value();
  EXPECT_EQ(report.sent, 10u);
  EXPECT_EQ(report.duplicates, 10u);
  expect_each_once(sink, 1, 10);
}

TEST(Producer, what_was_not_acknowledged_goes_first_and_unchanged_next_time) {
  MemorySink sink(1);
  bool down = true;
  sink.set_faults({}, [&]() -> Status {
    if (down) return fail(Remedy::recheck, "lost", "the answer is lost");
    return {};
  });
  SimClock clock;
  auto producer =
      Producer::open(sink, {.name = "shop", .attempts_max = 2, .backoff_ms = 0}, clock).value();
  EXPECT_FALSE(producer->send(some(10)));
  down = false;
  const SendReport report = producer->send(some(10, 10)).value();
  EXPECT_EQ(report.sent, 20u);
  EXPECT_EQ(report.duplicates, 10u);
  expect_each_once(sink, 1, 20);
}

// H12: a producer that restarts and sends everything again is recognised by its name.
TEST(Producer, H12_a_replay_after_a_restart_adds_nothing) {
  MemorySink sink(2);
  SimClock clock;
  ASSERT_TRUE(Producer::open(sink, {.name = "shop"}, clock).value()->send(some(50)));
  auto again = Producer::open(sink, {.name = "shop", .replay = true}, clock).value();
  EXPECT_EQ(again->send(some(60)).value().duplicates, 50u);
  expect_each_once(sink, 2, 60);
}

TEST(Producer, one_that_was_replaced_is_fenced) {
  MemorySink sink(1);
  SimClock clock;
  auto old = Producer::open(sink, {.name = "shop"}, clock).value();
  auto fresh = Producer::open(sink, {.name = "shop"}, clock).value();
  ASSERT_TRUE(fresh->send(some(5)));
  EXPECT_EQ(old->send(some(5)).error().tag, "fenced");
  expect_each_once(sink, 1, 5);
}

// A sink that forgets producers may have forgotten this one; asking twice does not make it known.
TEST(Producer, a_replay_to_a_sink_that_may_have_forgotten_it_is_too_old) {
  MemorySink sink(2);
  SimClock clock;
  sink.set_producer_horizon(1000);
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(Producer::open(sink, {.name = "shop", .replay = true}, clock).error().tag, "too_old");
  expect_each_once(sink, 2, 0);
  ASSERT_TRUE(Producer::open(sink, {.name = "shop"}, clock).value()->send(some(1)));
  auto again = Producer::open(sink, {.name = "shop", .replay = true}, clock).value();
  EXPECT_EQ(again->send(some(10)).value().duplicates, 1u);
  expect_each_once(sink, 2, 10);
}

TEST(Producer, a_replay_without_a_name_is_refused) {
  MemorySink sink(1);
  EXPECT_EQ(Producer::open(sink, {.name = "", .replay = true}).error().tag, "config");
  EXPECT_TRUE(Producer::open(sink, {}));
}

TEST(ProducerTest, a_sink_that_recognises_nothing_is_sent_to_and_copies_are_counted) {
  MemorySink sink(3, Recognises::none);
  SimClock clock;
  bool lose = false;
  sink.set_faults({}, [&]() -> Status {
    if (!std::exchange(lose, false)) return {};
    return fail(Remedy::recheck, "lost", "the answer was lost");
  });
  auto producer = Producer::open(sink, {.name = "shop", .backoff_ms = 0}, clock).value();
  EXPECT_EQ(producer->send(some(30)).value(), (SendReport{.sent = 30}));
  expect_each_once(sink, 3, 30);
  lose = true;
  const SendReport report = producer->send(some(30, 30)).value();
  EXPECT_EQ(report.sent, 30u);
  EXPECT_GT(report.maybe_twice, 0u);
  std::map<std::string, int> times;
  for (std::uint32_t p = 0; p < 3; ++p)
    for (const Message& message : sink.messages(p)) ++times[message.id];
  std::uint64_t twice = 0;
  for (const auto& [id, count] : times) twice += count == 2 ? 1 : 0;
  EXPECT_EQ(times.size(), 60u);
  EXPECT_EQ(twice, report.maybe_twice);
}

TEST(ProducerTest, what_a_sink_refuses_by_name_is_told_once_and_the_others_are_sent) {
  MemorySink sink(1, Recognises::none);
  SimClock clock;
  sink.refuse([](const Message& offered) -> Status {
    if (offered.id != "m3") return {};
    return fail(Remedy::park, "too_large", "m3 is too large");
  });
  auto producer = Producer::open(sink, {.name = "shop"}, clock).value();
  const auto refused = producer->send(some(6));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "too_large");
  EXPECT_EQ(sink.messages(0).size(), 5u);
  EXPECT_EQ(producer->send(some(2, 6)).value().sent, 2u) << "it is not sent again";
  EXPECT_EQ(sink.messages(0).size(), 7u);
}

TEST(ProducerTest, a_replay_needs_a_sink_that_recognises_it) {
  MemorySink sink(1, Recognises::none);
  SimClock clock;
  const auto refused = Producer::open(sink, {.name = "shop", .replay = true}, clock);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("does not recognise resends"), std::string::npos);
}

}  // namespace
}  // namespace once
