// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/once.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/message_view.h"

// What every source without order does (include/once/source.h), whatever the broker behind it.
// Redelivery, leases, delays and limits are tested as far as its traits name them.

namespace once::testing {

// A queue on its way through the suite.
struct QueueUnderTest {
  std::string name;
  std::function<std::string()> new_queue;  // answers its URL
  std::function<void(const std::string& url, const std::vector<Message>&)> send;
  std::function<Result<std::unique_ptr<Source>>(const std::string& url)> open;
  // The connection of a source is lost, and with it its session.
  std::function<void(Source&)> cut;
  std::function<void(std::int64_t)> let_pass_ms;  // time, as the broker sees it

  bool counts_attempts = true;  // else it only tells a first delivery from others
  // The broker hears of an ack when all messages before it are acknowledged too.
  bool acks_in_order = false;
  // It tells what a consumer had that was closed from what nobody has had.
  bool knows_closed_sessions = true;
};

inline void PrintTo(const QueueUnderTest& queue, std::ostream* out) { *out << queue.name; }

class QueueSuite : public ::testing::TestWithParam<QueueUnderTest> {
 protected:
  static std::vector<Message> messages(int from, int to) {
    std::vector<Message> made;
    for (int i = from; i < to; ++i) {
      Message& message = made.emplace_back();
      message.id = fmt::format("order {}", i);
      message.key = fmt::format("customer {}", i % 7);
      message.body = fmt::format(R"({{"number": {}}})", i);
      message.timestamp_ms = 1'700'000'000'000 + i;
    }
    return made;
  }
  std::string filled(int count) {
    const std::string url = GetParam().new_queue();
    GetParam().send(url, messages(0, count));
    return url;
  }
  std::unique_ptr<Source> source(const std::string& url) {
    auto opened = GetParam().open(url);
    EXPECT_TRUE(opened) << opened.error().text;
    return opened ? std::move(*opened) : nullptr;
  }

  // Polls until it has so many deliveries, or for `patience_ms` in vain. The batches own the bytes.
  struct Taken {
    std::vector<Batch> batches;
    std::vector<Delivery> deliveries;

    std::multiset<std::string> ids() const {
      std::multiset<std::string> found;
      for (const Delivery& delivery : deliveries) found.emplace(delivery.id);
      return found;
    }
  };
  static Taken take(Source& source, std::size_t count, std::size_t at_once = 1000) {
    Taken taken;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (taken.deliveries.size() < count && std::chrono::steady_clock::now() < deadline)
      poll(source, std::min(at_once, count - taken.deliveries.size()), taken);
    EXPECT_EQ(taken.deliveries.size(), count) << "the queue gives no more";
    return taken;
  }
  // What comes within a short time, which should be nothing.
  static Taken take_nothing(Source& source) {
    Taken taken;
    for (int i = 0; i < 10; ++i) poll(source, 1000, taken);
    EXPECT_TRUE(taken.deliveries.empty()) << taken.deliveries.front().id << " was delivered";
    return taken;
  }
  static std::multiset<std::string> ids(int from, int to) {
    std::multiset<std::string> wanted;
    for (const Message& message : messages(from, to)) wanted.insert(message.id);
    return wanted;
  }

  static void poll(Source& source, std::size_t count_max, Taken& taken) {
    auto batch = source.poll(count_max, 20);
    ASSERT_TRUE(batch) << batch.error().text;
    EXPECT_LE(batch->deliveries.size(), count_max);
    for (const Delivery& delivery : batch->deliveries) {
      EXPECT_EQ(delivery.partition, batch->partition);
      taken.deliveries.push_back(delivery);
    }
    if (!batch->deliveries.empty()) taken.batches.push_back(std::move(*batch));
  }
};

TEST_P(QueueSuite, says_what_it_can) {
  auto reader = source(filled(0));
  const SourceTraits traits = reader->traits();
  EXPECT_FALSE(traits.name.empty());
  EXPECT_FALSE(traits.ordered);
  EXPECT_EQ(traits.replayable, reader->replay() != nullptr);
  EXPECT_EQ(traits.lease_ms >= 0, reader->leases() != nullptr);
  EXPECT_GE(traits.delay_ms_max, 0);
}

TEST_P(QueueSuite, announces_its_partition_before_its_messages) {
  auto reader = source(filled(5));
  std::set<std::string> announced;
  std::size_t count = 0;
  for (int i = 0; i < 200 && count < 5; ++i) {
    const Batch batch = reader->poll(2, 20).value();
    if (batch.event == Batch::Event::assigned) announced.emplace(batch.partition);
    count += batch.deliveries.size();
    if (!batch.deliveries.empty()) {
      EXPECT_TRUE(announced.contains(std::string(batch.partition)));
    }
  }
  EXPECT_EQ(count, 5u);
}

TEST_P(QueueSuite, messages_come_whole) {
  std::vector<Message> sent = messages(0, 6);
  sent[1].headers = {{"region", "eu"}, {"empty", ""}};
  sent[2].body = std::string("\0\xff\n binary", 10);
  sent[3].body = "";
  sent[4].key.reset();
  sent[5].body->assign(100'000, 'x');
  const std::string url = GetParam().new_queue();
  GetParam().send(url, sent);
  auto reader = source(url);
  const Taken taken = take(*reader, sent.size());
  std::map<std::string, Message> found;
  for (const Delivery& delivery : taken.deliveries)
    found[std::string(delivery.id)] = message_of(delivery);
  for (const Message& message : sent) EXPECT_TRUE(found[message.id] == message) << message.id;
}

TEST_P(QueueSuite, asked_for_nothing_it_gives_nothing) {
  auto reader = source(filled(5));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(reader->poll(0, 5).value().deliveries.empty());
  EXPECT_EQ(take(*reader, 5, 2).ids(), ids(0, 5));
}

TEST_P(QueueSuite, acks_come_in_any_order_and_what_is_acknowledged_never_comes_again) {
  const std::string url = filled(20);
  auto reader = source(url);
  Taken taken = take(*reader, 20, 3);
  EXPECT_EQ(taken.ids(), ids(0, 20));
  std::set<std::string> kept;
  for (std::size_t i = taken.deliveries.size(); i-- > 0;) {
    const Delivery& delivery = taken.deliveries[i];
    if (i % 3 == 0)
      kept.emplace(delivery.id);
    else
      ASSERT_TRUE(reader->ack(std::span(&delivery, 1)));
  }
  if (GetParam().acks_in_order) {  // what is kept has to be the end
    take_nothing(*reader);
    kept.clear();
    for (std::size_t i = 0; i < 10; ++i)
      ASSERT_TRUE(reader->ack(std::span(taken.deliveries).subspan(i, 1)));
    for (std::size_t i = 12; i < 20; ++i) kept.emplace(taken.deliveries[i].id);
  }
  reader.reset();
  auto next = source(url);
  const Taken again = take(*next, kept.size());
  EXPECT_EQ(again.ids(), std::multiset<std::string>(kept.begin(), kept.end()));
  if (GetParam().knows_closed_sessions) {
    for (const Delivery& delivery : again.deliveries) EXPECT_GT(delivery.attempt, 1u);
  }
  ASSERT_TRUE(next->ack(again.deliveries));
  take_nothing(*next);
}

TEST_P(QueueSuite, what_is_released_comes_again_with_a_higher_attempt) {
  auto reader = source(filled(6));
  const Taken taken = take(*reader, 6);
  for (const Delivery& delivery : taken.deliveries) EXPECT_EQ(delivery.attempt, 1u);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(2)));
  ASSERT_TRUE(reader->release(std::span(taken.deliveries).subspan(2)));
  Taken again = take(*reader, 4);
  std::multiset<std::string> wanted;
  for (std::size_t i = 2; i < 6; ++i) wanted.emplace(taken.deliveries[i].id);
  EXPECT_EQ(again.ids(), wanted);
  for (const Delivery& delivery : again.deliveries) EXPECT_GE(delivery.attempt, 2u);
  if (GetParam().counts_attempts) {
    ASSERT_TRUE(reader->release(again.deliveries));
    again = take(*reader, 4);
    for (const Delivery& delivery : again.deliveries) EXPECT_EQ(delivery.attempt, 3u);
  }
}

TEST_P(QueueSuite, a_release_with_a_delay_is_not_delivered_before_it) {
  const std::string url = filled(2);
  auto reader = source(url);
  const std::int64_t delay_ms = std::min<std::int64_t>(reader->traits().delay_ms_max, 1500);
  const Taken taken = take(*reader, 2);
  ASSERT_TRUE(reader->release(taken.deliveries, delay_ms));
  if (delay_ms > 0) {
    take_nothing(*reader);
    GetParam().let_pass_ms(delay_ms);
  }
  EXPECT_EQ(take(*reader, 2).ids(), ids(0, 2));
}

TEST_P(QueueSuite, of_two_consumers_each_message_goes_to_one) {
  const std::string url = filled(0);
  auto one = source(url);
  auto other = source(url);
  // Both are known before the first message comes: some brokers hand out all that they have, others
  // deal out messages as they come.
  take_nothing(*one);
  take_nothing(*other);
  Taken first;
  Taken second;
  GetParam().send(url, messages(0, 30));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (first.deliveries.size() + second.deliveries.size() < 30 &&
         std::chrono::steady_clock::now() < deadline) {
    poll(*one, 2, first);
    poll(*other, 2, second);
    ASSERT_TRUE(one->ack(first.deliveries));
    ASSERT_TRUE(other->ack(second.deliveries));
  }
  std::multiset<std::string> all = first.ids();
  all.merge(second.ids());
  EXPECT_EQ(all, ids(0, 30));
  EXPECT_FALSE(second.deliveries.empty());
}

TEST_P(QueueSuite, no_more_than_its_limit_are_unacknowledged) {
  const std::string url = filled(50);
  auto reader = source(url);
  const std::size_t limit = reader->traits().unacknowledged_max;
  if (limit == 0 || limit >= 50) {  // there is none to be seen
    EXPECT_EQ(take(*reader, 50).ids(), ids(0, 50));
    return;
  }
  Taken taken = take(*reader, limit);
  take_nothing(*reader);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(1)));
  const Taken one_more = take(*reader, 1);
  take_nothing(*reader);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).subspan(1)));
  ASSERT_TRUE(reader->ack(one_more.deliveries));
  EXPECT_EQ(take(*reader, std::min<std::size_t>(limit, 50 - limit - 1)).deliveries.size(),
            std::min<std::size_t>(limit, 50 - limit - 1));
}

// --- Sessions

TEST_P(QueueSuite, what_a_lost_session_had_comes_again) {
  auto reader = source(filled(8));
  const Taken taken = take(*reader, 8);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(3)));
  GetParam().cut(*reader);
  const Taken again = take(*reader, 5);
  std::multiset<std::string> wanted;
  for (std::size_t i = 3; i < 8; ++i) wanted.emplace(taken.deliveries[i].id);
  EXPECT_EQ(again.ids(), wanted);
  for (const Delivery& delivery : again.deliveries) EXPECT_GT(delivery.attempt, 1u);
}

// The tags of the new session may be those of the old one: no message may be lost by that.
TEST_P(QueueSuite, an_ack_of_a_lost_session_acknowledges_nothing) {
  const std::string url = filled(8);
  auto reader = source(url);
  const Taken old = take(*reader, 8);
  GetParam().cut(*reader);
  const Taken now = take(*reader, 8);
  ASSERT_TRUE(reader->ack(old.deliveries));
  reader.reset();
  auto next = source(url);
  EXPECT_EQ(take(*next, 8).ids(), ids(0, 8)) << "nothing was acknowledged in its session";
}

TEST_P(QueueSuite, a_release_of_a_lost_session_gives_nothing_back) {
  auto reader = source(filled(8));
  const Taken old = take(*reader, 8);
  GetParam().cut(*reader);
  const Taken now = take(*reader, 8);
  ASSERT_TRUE(reader->release(old.deliveries));
  take_nothing(*reader);
  ASSERT_TRUE(reader->ack(now.deliveries));
  take_nothing(*reader);
}

TEST_P(QueueSuite, acks_and_releases_may_be_repeated) {
  auto reader = source(filled(4));
  const Taken taken = take(*reader, 4);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(2)));
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(2)));
  ASSERT_TRUE(reader->release(std::span(taken.deliveries).first(2)));
  take_nothing(*reader);
  ASSERT_TRUE(reader->release(std::span(taken.deliveries).subspan(2)));
  const Taken again = take(*reader, 2);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).subspan(2))) << "of their first delivery";
  ASSERT_TRUE(reader->release(again.deliveries));
  EXPECT_EQ(take(*reader, 2).ids(), again.ids());
}

// --- Leases

TEST_P(QueueSuite, a_lease_that_ran_out_lets_the_message_come_again) {
  const std::string url = filled(4);
  auto reader = source(url);
  const std::int64_t lease_ms = reader->traits().lease_ms;
  const Taken taken = take(*reader, 4);
  if (lease_ms < 0) {  // it is ours for as long as the session lives
    GetParam().let_pass_ms(1000);
    take_nothing(*reader);
    return;
  }
  GetParam().let_pass_ms(lease_ms + 1);
  const Taken again = take(*reader, 4);
  EXPECT_EQ(again.ids(), ids(0, 4));
  // What had it before comes too late, and harms nobody.
  ASSERT_TRUE(reader->ack(taken.deliveries));
  ASSERT_TRUE(reader->release(again.deliveries));
  EXPECT_EQ(take(*reader, 4).ids(), ids(0, 4));
}

TEST_P(QueueSuite, a_lease_that_is_extended_keeps_the_message) {
  const std::string url = filled(4);
  auto reader = source(url);
  SourceLeases* const leases = reader->leases();
  if (leases == nullptr) {
    EXPECT_LT(reader->traits().lease_ms, 0);
    return;
  }
  const std::int64_t lease_ms = reader->traits().lease_ms;
  const Taken taken = take(*reader, 4);
  for (int i = 0; i < 4; ++i) {
    GetParam().let_pass_ms(lease_ms / 2);
    ASSERT_TRUE(leases->extend(std::span(taken.deliveries).first(3)));
  }
  const Taken expired = take(*reader, 1);
  EXPECT_EQ(expired.deliveries.front().id, taken.deliveries[3].id) << "it was not extended";
  take_nothing(*reader);
  ASSERT_TRUE(reader->ack(std::span(taken.deliveries).first(3)));
  ASSERT_TRUE(reader->ack(expired.deliveries));
  GetParam().let_pass_ms(lease_ms * 2);
  take_nothing(*reader);
}

TEST_P(QueueSuite, a_batch_outlives_its_source) {
  Taken taken;
  {
    auto reader = source(filled(5));
    taken = take(*reader, 5);
  }
  EXPECT_EQ(taken.ids(), ids(0, 5));
}

}  // namespace once::testing
