// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>

#include "streams/stream_fixture.h"

// What every ordered, replayable source does (include/once/source.h), whatever the broker behind
// it.

namespace once::testing {

class SourceSuite : public StreamSuite {
 protected:
  // A topic with messages 0..count in each partition, the partition's number in the thousands.
  std::string filled(std::uint32_t partitions, int count) {
    const std::string url = topic(partitions);
    auto writer = sink(url);
    for (std::uint32_t p = 0; p < partitions; ++p) {
      const int base = static_cast<int>(p) * 1000;
      const Stamp stamp = entered(*writer, p, "shop");
      const auto done = writer->append(p, stamp, messages(base, base + count));
      EXPECT_TRUE(done) << done.error().text;
    }
    return url;
  }
};

TEST_P(SourceSuite, announces_every_partition_before_its_messages) {
  const std::string url = filled(3, 5);
  auto reader = source(url);
  EXPECT_TRUE(reader->traits().ordered);
  EXPECT_TRUE(reader->traits().replayable);
  std::set<std::string> announced;
  const std::vector<Read> reads = read_until(*reader, -1, [&](const Batch& batch, std::size_t) {
    if (batch.event == Batch::Event::assigned) announced.emplace(batch.partition);
    if (!batch.deliveries.empty()) {
      EXPECT_TRUE(announced.contains(std::string(batch.partition)));
    }
    return batch.event == Batch::Event::end;
  });
  EXPECT_EQ(announced.size(), 3u);
  EXPECT_EQ(reads.size(), 15u);
  expect_order(reads);
}

// A broker may count marks of its own behind the last message.
TEST_P(SourceSuite, tells_where_all_partitions_end) {
  const std::string url = filled(3, 5);
  auto reader = source(url);
  const auto before = reader->replay()->ends();
  ASSERT_TRUE(before) << before.error().text;
  ASSERT_EQ(before->size(), 3u);
  std::vector<std::string> names;
  for (const PartitionEnd& end : *before) names.push_back(end.partition);
  EXPECT_EQ(names, reader->traits().partitions);
  std::map<std::string, std::int64_t> last;
  for (const Read& read : all(url)) last[read.partition] = read.offset;
  for (const PartitionEnd& end : *before) {
    EXPECT_GT(end.offset, last.at(end.partition));
    EXPECT_LE(end.offset, last.at(end.partition) + 2);
  }
}

TEST_P(SourceSuite, gives_at_most_as_many_as_asked_for_and_all_of_them) {
  const std::string url = filled(1, 23);
  auto reader = source(url);
  const std::vector<Read> reads = read_until(*reader, -1, ended, 4);
  EXPECT_EQ(ids(reads), ids(messages(0, 23)));
  expect_order(reads);
}

TEST_P(SourceSuite, begins_where_it_was_told_to) {
  const std::string url = filled(1, 10);
  const std::vector<Read> everything = all(url);
  ASSERT_EQ(everything.size(), 10u);
  auto reader = source(url);
  const std::vector<Read> reads = read_until(*reader, everything[7].offset, ended);
  EXPECT_EQ(ids(reads), ids(messages(7, 10)));
}

TEST_P(SourceSuite, goes_back_when_it_is_told_to) {
  const std::string url = filled(1, 10);
  const std::vector<Read> everything = all(url);
  auto reader = source(url, false);
  (void)read_until(*reader, -1, [](const Batch&, std::size_t count) { return count >= 10; });
  ASSERT_TRUE(reader->replay()->seek(everything[3].partition, everything[3].offset));
  const std::vector<Read> again =
      read_until(*reader, -1, [](const Batch&, std::size_t count) { return count >= 7; });
  EXPECT_EQ(ids(again), ids(messages(3, 10)));
  EXPECT_EQ(again.front().attempt, 1u);
}

TEST_P(SourceSuite, an_offset_beyond_the_end_says_that_messages_are_gone) {
  const std::string url = filled(1, 3);
  auto reader = source(url);
  const Batch news = reader->poll(10, 1000).value();
  ASSERT_EQ(news.event, Batch::Event::assigned);
  const Status sought = reader->replay()->seek(news.partition, 1000);
  ASSERT_FALSE(sought);
  EXPECT_EQ(sought.error().tag, "gone");
  EXPECT_EQ(sought.error().remedy, Remedy::stop);
}

TEST_P(SourceSuite, a_partition_it_does_not_have_cannot_be_sought) {
  const std::string url = filled(1, 1);
  auto reader = source(url);
  EXPECT_FALSE(reader->replay()->seek("elsewhere/0", 0));
}

TEST_P(SourceSuite, what_is_released_comes_again_with_a_higher_attempt) {
  const std::string url = filled(1, 6);
  auto reader = source(url, false);
  std::vector<Batch> held;
  std::size_t count = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (count < 6 && std::chrono::steady_clock::now() < deadline) {
    Batch batch = reader->poll(2, 50).value();
    if (batch.event == Batch::Event::assigned) {
      ASSERT_TRUE(reader->replay()->seek(batch.partition, -1));
    }
    count += batch.deliveries.size();
    if (!batch.deliveries.empty()) held.push_back(std::move(batch));
  }
  ASSERT_EQ(held.size(), 3u);
  ASSERT_TRUE(reader->ack(held[0].deliveries));
  ASSERT_TRUE(reader->release(held[1].deliveries));
  const std::vector<Read> again =
      read_until(*reader, -1, [](const Batch&, std::size_t n) { return n >= 4; });
  EXPECT_EQ(ids(again), ids(messages(2, 6)));
  for (const Read& read : again) EXPECT_EQ(read.attempt, 2u);
}

TEST_P(SourceSuite, asked_for_nothing_it_tells_only_news) {
  const std::string url = filled(2, 5);
  auto reader = source(url, false);
  std::set<std::string> announced;
  for (int i = 0; i < 50; ++i) {
    const Batch batch = reader->poll(0, 10).value();
    EXPECT_TRUE(batch.deliveries.empty());
    EXPECT_FALSE(batch.drained);
    if (batch.event != Batch::Event::assigned) continue;
    announced.emplace(batch.partition);
    ASSERT_TRUE(reader->replay()->seek(batch.partition, -1));
  }
  EXPECT_EQ(announced.size(), 2u);
  const std::vector<Read> reads =
      read_until(*reader, -1, [](const Batch&, std::size_t count) { return count >= 10; });
  expect_order(reads);
}

TEST_P(SourceSuite, says_that_it_is_drained_when_everything_was_read_and_not_before) {
  const std::string url = filled(2, 20);
  auto reader = source(url, false);
  const std::vector<Read> reads = read_until(
      *reader, -1, [](const Batch& batch, std::size_t) { return batch.drained; }, 3);
  EXPECT_EQ(reads.size(), 40u);
  expect_order(reads);
}

TEST_P(SourceSuite, follows_what_is_sent_later) {
  const std::string url = topic();
  auto reader = source(url, false);
  EXPECT_TRUE(read_until(*reader, -1, [](const Batch& batch, std::size_t) {
                return batch.drained;
              }).empty());
  auto writer = sink(url);
  const Stamp stamp = entered(*writer, 0, "shop");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->append(0, at(stamp, static_cast<std::uint64_t>(i) * 2),
                               messages(i * 2, i * 2 + 2)));
    const std::vector<Read> reads =
        read_until(*reader, -1, [](const Batch&, std::size_t count) { return count >= 2; });
    EXPECT_EQ(ids(reads), ids(messages(i * 2, i * 2 + 2)));
  }
}

TEST_P(SourceSuite, readers_do_not_disturb_each_other) {
  const std::string url = filled(1, 10);
  auto one = source(url);
  auto other = source(url);
  EXPECT_EQ(ids(read_until(*one, -1, ended, 3)), ids(messages(0, 10)));
  EXPECT_EQ(ids(read_until(*other, -1, ended, 5)), ids(messages(0, 10)));
}

TEST_P(SourceSuite, a_batch_outlives_its_source) {
  const std::string url = filled(1, 10);
  std::vector<Batch> held;
  {
    auto reader = source(url);
    for (bool more = true; more;) {
      Batch batch = reader->poll(4, 100).value();
      if (batch.event == Batch::Event::assigned) {
        ASSERT_TRUE(reader->replay()->seek(batch.partition, -1));
      }
      more = batch.event != Batch::Event::end;
      if (!batch.deliveries.empty()) held.push_back(std::move(batch));
    }
  }
  std::vector<std::string> found;
  for (const Batch& batch : held)
    for (const Delivery& delivery : batch.deliveries) found.emplace_back(delivery.id);
  EXPECT_EQ(found, ids(messages(0, 10)));
}

}  // namespace once::testing
