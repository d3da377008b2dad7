// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "streams/stream_fixture.h"

// What every sink does (include/once/sink.h), whatever the broker behind it: SinkSuite for all,
// ProducersSuite for those that recognise resends by stamp. A sink whose traits say so and that
// does not go through the second one fails in the first.

namespace once::testing {

class SinkSuite : public StreamSuite {};
class ProducersSuite : public StreamSuite {};

TEST_P(SinkSuite, says_what_it_promises) {
  auto writer = sink(topic());
  const SinkTraits traits = writer->traits();
  EXPECT_FALSE(traits.name.empty());
  EXPECT_EQ(traits.recognises == Recognises::by_stamp, writer->producers() != nullptr);
  EXPECT_TRUE(traits.recognises_ms == -1 || traits.recognises_ms > 0);
  EXPECT_EQ(is_in_suite("ProducersSuite"), traits.recognises == Recognises::by_stamp);
}

TEST_P(SinkSuite, what_is_sent_comes_back_whole_and_in_order) {
  const std::string url = topic();
  std::vector<Message> sent = messages(0, 100);
  sent[1].headers = {{"region", "eu"}, {"region", "us"}, {"empty", ""}};
  sent[2].body = std::string("\0\xff\n binary", 10);
  sent[2].key = std::string("\0\x01", 2);
  sent[3].body = "";
  sent[4].key.reset();
  sent[5].id = std::string("\xf0\x9f\x90\x98 'quoted' \0", 15);
  sent[6].body->assign(700'000, 'x');
  sent[7].body.reset();  // a tombstone
  sent[8].key = "";      // a key without a byte is a key
  sent[9].headers = {{"none", std::nullopt}, {"empty", ""}};
  {
    auto writer = sink(url);
    const Stamp stamp = entered(*writer, 0, "shop");
    const auto receipt = writer->append(0, stamp, sent);
    ASSERT_TRUE(receipt) << receipt.error().text;
    if (GetParam().tells_offsets) {
      EXPECT_GE(receipt->offset, 0);
    }
    EXPECT_EQ(receipt->duplicates, 0u);
  }
  const std::vector<Read> reads = all(url);
  ASSERT_EQ(reads.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(reads[i].message.id, sent[i].id);
    EXPECT_EQ(reads[i].message.key, sent[i].key) << i;
    EXPECT_EQ(reads[i].message.body, sent[i].body) << i;
    EXPECT_EQ(reads[i].message.headers.size(), sent[i].headers.size()) << i;
    EXPECT_EQ(reads[i].message.timestamp_ms, sent[i].timestamp_ms) << i;
    EXPECT_TRUE(reads[i].message == sent[i]) << i;
  }
  expect_order(reads);
}

TEST_P(ProducersSuite, a_stamp_travels_with_its_message) {
  const std::string url = topic();
  Stamp stamp;
  {
    auto writer = sink(url);
    stamp = writer->producers()->enter(0, "shop").value();
    ASSERT_TRUE(writer->append(0, stamp, messages(0, 3)));
  }
  const std::vector<Read> reads = all(url);
  ASSERT_EQ(reads.size(), 3u);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(reads[i].stamp.producer, stamp.producer);
    EXPECT_EQ(reads[i].stamp.epoch, stamp.epoch);
    EXPECT_EQ(reads[i].stamp.sequence, stamp.sequence + i);
  }
}

TEST_P(ProducersSuite, a_resend_is_known_and_answered_with_the_place_of_the_original) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    const Receipt first = writer->append(0, stamp, messages(0, 5)).value();
    const Receipt again = writer->append(0, stamp, messages(0, 5)).value();
    EXPECT_EQ(again, (Receipt{first.offset, 5}));
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 5)));
}

// By which a relay knows that what is there under its sequences is its own.
TEST_P(ProducersSuite, the_last_message_of_a_producer_is_known_by_its_digest) {
  const std::string url = topic();
  std::vector<Message> sent = messages(0, 5);
  sent[4].headers = {{"none", std::nullopt}, {"empty", ""}, {"region", "eu"}};
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    EXPECT_EQ(writer->producers()->last_digest(0, "shop").value(), std::nullopt);
    ASSERT_TRUE(writer->append(0, stamp, sent));
    ASSERT_TRUE(
        writer->append(0, writer->producers()->enter(0, "another").value(), messages(5, 6)));
    EXPECT_EQ(writer->producers()->last_digest(0, "shop").value(), digest_of(sent[4]));
  }
  auto writer = sink(url);
  ASSERT_TRUE(writer->producers()->enter(0, "shop"));
  EXPECT_EQ(writer->producers()->last_digest(0, "shop").value(), digest_of(sent[4]))
      << "after a restart";
  EXPECT_NE(digest_of(sent[4]), digest_of(messages(4, 5)[0])) << "headers count";
}

// A sender counts messages, and knows nothing of what fits into one write of the broker.
TEST_P(ProducersSuite, large_messages_are_taken_however_many_come_at_once) {
  const std::string url = topic();
  std::vector<Message> sent = messages(0, 75);
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i].body = std::string(900'000 + i, static_cast<char>('a' + i % 26));
  {
    auto writer = sink(url);
    const Stamp stamp = entered(*writer, 0, "shop");
    ASSERT_TRUE(writer->append(0, stamp, std::span(sent).first(40)));
    const auto rest = writer->append(0, stamp, sent);
    ASSERT_TRUE(rest) << rest.error().text;
    EXPECT_EQ(rest->duplicates, 40u);
    const auto again = writer->append(0, stamp, sent);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->duplicates, 75u);
  }
  const std::vector<Read> reads = all(url);
  ASSERT_EQ(ids(reads), ids(sent));
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_TRUE(reads[i].message == sent[i]) << i;
  expect_order(reads);
}

TEST_P(ProducersSuite, of_an_overlapping_batch_only_the_new_messages_are_appended) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    ASSERT_TRUE(writer->append(0, stamp, messages(0, 3)));
    EXPECT_EQ(writer->append(0, at(stamp, 1), messages(1, 6))->duplicates, 2u);
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 6)));
}

TEST_P(ProducersSuite, a_message_before_its_predecessors_is_refused_and_leaves_nothing) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    ASSERT_TRUE(writer->append(0, stamp, messages(0, 2)));
    const auto early = writer->append(0, at(stamp, 4), messages(4, 6));
    ASSERT_FALSE(early);
    EXPECT_EQ(early.error().remedy, Remedy::retry);
    EXPECT_EQ(early.error().tag, "gap");
    ASSERT_TRUE(writer->append(0, at(stamp, 2), messages(2, 4)));
    ASSERT_TRUE(writer->append(0, at(stamp, 4), messages(4, 6)));
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 6)));
}

// A sender that counts on from elsewhere must not be taken at its word: what it skips is lost.
TEST_P(ProducersSuite, a_producer_that_is_not_known_begins_with_0_wherever_its_sender_is) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    EXPECT_EQ(stamp.sequence, 0u);
    const auto later = writer->append(0, at(stamp, 3), messages(3, 6));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().tag, "gap");
    ASSERT_TRUE(writer->append(0, stamp, messages(0, 3)));
    ASSERT_TRUE(writer->append(0, at(stamp, 3), messages(3, 6)));
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 6)));
}

TEST_P(ProducersSuite, H12_a_producer_that_was_restarted_goes_on_where_it_was) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    ASSERT_TRUE(writer->append(0, writer->producers()->enter(0, "shop").value(), messages(0, 4)));
  }
  {
    auto writer = sink(url);
    const Stamp stamp = writer->producers()->enter(0, "shop").value();
    EXPECT_EQ(stamp.sequence, 4u);
    // The answer to the first life's last batch was lost: it is sent again, and more.
    const auto again = writer->append(0, at(stamp, 0), messages(0, 4));
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->duplicates, 4u);
    EXPECT_EQ(writer->append(0, at(stamp, 2), messages(2, 8))->duplicates, 2u);
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 8)));
}

TEST_P(ProducersSuite, whoever_enters_again_fences_the_earlier_epoch) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp old = writer->producers()->enter(0, "shop").value();
    ASSERT_TRUE(writer->append(0, old, messages(0, 2)));
    const Stamp fresh = writer->producers()->enter(0, "shop").value();
    EXPECT_EQ(fresh.producer, old.producer);
    EXPECT_GT(fresh.epoch, old.epoch);
    const auto zombie = writer->append(0, at(old, 2), messages(2, 4));
    ASSERT_FALSE(zombie);
    EXPECT_EQ(zombie.error().remedy, Remedy::stop);
    EXPECT_EQ(zombie.error().tag, "fenced");
    ASSERT_TRUE(writer->append(0, fresh, messages(2, 3)));
  }
  EXPECT_EQ(ids(all(url)), ids(messages(0, 3)));
}

TEST_P(ProducersSuite, another_process_that_enters_fences_this_one) {
  if (GetParam().one_writing_process)
    return;  // then there is no other: see `a_second_sink_is_refused_by_name`
  const std::string url = topic();
  auto here = sink(url);
  const Stamp old = here->producers()->enter(0, "shop").value();
  ASSERT_TRUE(here->append(0, old, messages(0, 2)));
  auto there = sink(url);
  const Stamp fresh = there->producers()->enter(0, "shop").value();
  ASSERT_TRUE(there->append(0, fresh, messages(2, 4)));
  // It may take an attempt to find out, but nothing is ever appended.
  std::string tag;
  for (int i = 0; i < 5 && tag != "fenced"; ++i) {
    const auto zombie = here->append(0, at(old, 2), messages(90, 92));
    ASSERT_FALSE(zombie);
    tag = zombie.error().tag;
  }
  EXPECT_EQ(tag, "fenced");
  const auto goes_on = there->append(0, at(fresh, 4), messages(4, 6));
  EXPECT_TRUE(goes_on) << goes_on.error().text;
  EXPECT_EQ(ids(all(url)), ids(messages(0, 6)));
}

TEST_P(SinkSuite, a_second_sink_is_refused_by_name) {
  if (!GetParam().one_writing_process) return;  // see the test before this one
  const std::string url = topic();
  auto first = sink(url);
  const auto second = GetParam().open_sink(url);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().tag, "busy");
}

TEST_P(ProducersSuite, producers_do_not_know_each_other) {
  const std::string url = topic();
  {
    auto writer = sink(url);
    const Stamp shop = writer->producers()->enter(0, "shop").value();
    const Stamp bank = writer->producers()->enter(0, "bank").value();
    EXPECT_NE(shop.producer, bank.producer);
    ASSERT_TRUE(writer->append(0, shop, messages(0, 2)));
    ASSERT_TRUE(writer->append(0, bank, messages(100, 102)));
    ASSERT_TRUE(writer->append(0, at(shop, 2), messages(2, 4)));
  }
  EXPECT_EQ(ids(all(url)), (std::vector<std::string>{"order 0", "order 1", "order 100", "order 101",
                                                     "order 2", "order 3"}));
}

TEST_P(SinkSuite, partitions_do_not_know_each_other) {
  if (GetParam().partitions_max == 1) {
    EXPECT_EQ(sink(topic())->partitions().value(), 1u);
    return;
  }
  const std::string url = topic(3);
  {
    auto writer = sink(url);
    EXPECT_EQ(writer->partitions().value(), 3u);
    for (const std::uint32_t partition : {2u, 0u}) {
      const Stamp stamp = entered(*writer, partition, "shop");
      EXPECT_EQ(stamp.sequence, 0u);
      ASSERT_TRUE(writer->append(partition, stamp, messages(0, 2)));
    }
  }
  std::map<std::string, int> counts;
  for (const Read& read : all(url)) ++counts[read.partition];
  EXPECT_EQ(counts.size(), 2u);
  for (const auto& [partition, count] : counts) EXPECT_EQ(count, 2) << partition;
}

TEST_P(ProducersSuite, strangers_and_missing_partitions_are_refused) {
  const std::string url = topic();
  auto writer = sink(url);
  const auto stranger = writer->append(0, {4711, 1, 0}, messages(0, 1));
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().remedy, Remedy::stop);
  const auto nowhere = writer->producers()->enter(7, "shop");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().tag, "partition");
  EXPECT_TRUE(all(url).empty());
}

TEST_P(SinkSuite, threads_that_send_at_once_keep_their_orders) {
  const std::string url = topic();
  constexpr int producers = 4;
  constexpr int batches = 10;
  {
    auto writer = sink(url);
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p)
      threads.emplace_back([&, p] {
        const Stamp stamp = entered(*writer, 0, fmt::format("producer {}", p));
        for (int b = 0; b < batches; ++b) {
          const auto done = writer->append(0, at(stamp, static_cast<std::uint64_t>(b) * 5),
                                           messages(p * 1000 + b * 5, p * 1000 + b * 5 + 5));
          EXPECT_TRUE(done) << done.error().text;
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<std::vector<std::string>> found(producers);
  for (const Read& read : all(url)) {
    const auto number = std::stoul(read.message.id.substr(read.message.id.rfind(' ')));
    found.at(number / 1000).push_back(read.message.id);
  }
  for (int p = 0; p < producers; ++p)
    EXPECT_EQ(found[static_cast<std::size_t>(p)], ids(messages(p * 1000, p * 1000 + 50)));
}

// What a sink that recognises nothing must not do: take a part and answer an error that denies it.
TEST_P(SinkSuite, a_missing_partition_is_refused_and_nothing_is_appended) {
  const std::string url = topic();
  auto writer = sink(url);
  const Stamp stamp = entered(*writer, 0, "shop");
  const auto nowhere = writer->append(7, stamp, messages(0, 1));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().remedy, Remedy::stop);
  EXPECT_EQ(nowhere.error().tag, "partition");
  EXPECT_TRUE(all(url).empty());
}

}  // namespace once::testing
