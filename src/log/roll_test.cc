// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"
#include "log/topic.h"
#include "log/verify.h"

namespace once::log {
namespace {

// A group larger than a segment behind an entry: the tail holds no message yet, and a new segment
// would have its name.
TEST(Roll, a_group_larger_than_a_segment_loses_nothing_whatever_the_retention) {
  for (const std::int64_t retention_ms : {std::int64_t{3'600'000}, std::int64_t{-1}}) {
    for (const std::int64_t retention_bytes : {std::int64_t{1} << 30, std::int64_t{-1}}) {
      Bench bench;
      bench.options.segment_bytes_max = 4096;
      bench.options.retention_ms = retention_ms;
      bench.options.retention_bytes = retention_bytes;
      auto partition = bench.open();
      std::vector<std::string> sent;
      for (int run = 0; run < 4; ++run) {
        const Stamp stamp = partition->enter("p").value();
        auto some = texts(run * 60, run * 60 + 60);
        for (Message& message : some) {
          message.body->append(100, 'x');
          sent.push_back(*message.body);
        }
        ASSERT_EQ(append(*partition, stamp, some).value(), (Receipt{run * 60, 0}));
        EXPECT_EQ(append(*partition, stamp, some).value(), (Receipt{run * 60, 60}));
        ASSERT_EQ(read_all(*partition), sent);
        if (run % 2 == 0) partition = bench.open();
      }
      ASSERT_TRUE(partition->close());
      partition = bench.open();
      EXPECT_EQ(read_all(*partition), sent);
      EXPECT_TRUE(verify_partition(bench.files, bench.directory));
    }
  }
}

TEST(Roll, a_tail_without_messages_is_never_left_however_many_enter) {
  Bench bench;
  bench.options.segment_bytes_max = segment_bytes_least;
  bench.options.retention_ms = 1000;
  auto partition = bench.open();
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 200; ++i)
    ids.insert(partition->enter("producer " + std::to_string(i)).value().producer);
  EXPECT_EQ(ids.size(), 200u);
  EXPECT_EQ(partition->info().segments, 1u);
  ASSERT_TRUE(append(*partition, {}, texts(0, 2)));
  ASSERT_TRUE(append(*partition, {}, texts(2, 4)));
  partition = bench.open();
  EXPECT_EQ(read_all(*partition), bodies(0, 4));
  EXPECT_EQ(partition->info().producers, 200u);
}

// Otherwise every group would have a segment, and every segment the producers again.
TEST(Roll, many_producers_make_segments_longer) {
  Bench bench;
  bench.options.segment_bytes_max = segment_bytes_least;
  auto partition = bench.open();
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(partition->enter(std::string(200, 'n') + std::to_string(i)));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(append(*partition, {}, texts(i, i + 1)));
  EXPECT_LE(partition->info().segments, 2u);
  EXPECT_EQ(read_all(*partition), bodies(0, 100));
}

TEST(Roll, a_segment_never_takes_the_place_of_a_file) {
  Bench bench;
  ASSERT_TRUE(append(*bench.open(), {}, texts(0, 2)));
  const auto before = bench.files.contents();
  EXPECT_EQ(create_segment(bench.files, bench.directory, 1, {}, {}, 0).error().tag, "exists");
  EXPECT_EQ(bench.files.contents(), before);
}

// What an older version left behind that had rolled twice behind the same message: the second
// segment took the place of the first, and the addresses of the first are missing.
struct TwiceRolled {
  Bench bench;
  Stamp lost_entry{77, 1, 0};

  TwiceRolled() {
    auto partition = bench.open();
    const Stamp stamp = partition->enter("p").value();
    EXPECT_TRUE(append(*partition, stamp, texts(0, 3)));
    EXPECT_TRUE(append(*partition, after(stamp, 3), texts(3, 6)));
    EXPECT_TRUE(partition->close());
    partition.reset();
    Superblock superblock = read_superblock(bench.files, bench.directory).value();
    ProducerTable table;
    EXPECT_TRUE(table.apply_entry("p", stamp.producer, stamp.epoch, 0));
    EXPECT_TRUE(table.apply(stamp, 6, 0));
    EXPECT_TRUE(table.apply_entry("lost", lost_entry.producer, lost_entry.epoch, 6));
    superblock.durable.address += 300;
    superblock.generation += 1;
    const Tail tail = create_segment(bench.files, bench.directory, superblock.log_id,
                                     superblock.durable, table, 0)
                          .value();
    EXPECT_TRUE(update_superblock(bench.files, bench.directory, superblock));
    producer = stamp;
  }
  Stamp producer;
};

TEST(Roll, a_log_with_missing_addresses_but_all_messages_is_opened) {
  TwiceRolled old;
  auto partition = old.bench.try_open();
  ASSERT_TRUE(partition) << partition.error().text;
  EXPECT_EQ(read_all(**partition), bodies(0, 6));
  EXPECT_EQ(append(**partition, after(old.producer, 3), texts(3, 6)).value().duplicates, 3u);
  EXPECT_EQ(append(**partition, old.lost_entry, texts(6, 7)).value(), (Receipt{6, 0}));
  EXPECT_EQ(append(**partition, after(old.producer, 6), texts(7, 8)).value(), (Receipt{7, 0}));
  *partition = old.bench.open();
  EXPECT_EQ(read_all(**partition), bodies(0, 8));
  EXPECT_TRUE(verify_partition(old.bench.files, old.bench.directory));
}

TEST(Roll, missing_addresses_do_not_excuse_a_missing_message) {
  TwiceRolled old;
  std::string& segment = old.bench.files.content(old.bench.segment(0));
  segment.resize(segment.size() - 200);
  EXPECT_EQ(old.bench.try_open().error().tag, "corrupt");
}

// A topic whose segments are gone as an older version left it: removed though they were live.
struct DamagedTopic {
  testing::MemoryFiles files;
  TestClock clock;

  explicit DamagedTopic(bool keeps_last) {
    TopicOptions options;
    options.segment_bytes_max = segment_bytes_least;
    EXPECT_TRUE(create_topic(files, "data", "orders", options));
    auto sink = open_log_sink(files, "data", "orders", clock).value();
    stamp = sink->producers()->enter(0, "p").value();
    for (int i = 0; i < 12; ++i)
      EXPECT_TRUE(sink->append(0, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    sink.reset();
    auto contents = files.contents();
    std::string last;
    for (const auto& [path, content] : contents)
      if (path.ends_with(".log")) last = path;
    std::erase_if(contents, [&](const auto& file) {
      return (file.first.ends_with(".log") && (!keeps_last || file.first != last)) ||
             file.first.ends_with(".index");
    });
    files.set_contents(contents);
    first_left = std::stoll(last.substr(last.rfind('/') + 1));
  }

  Stamp stamp;
  std::int64_t first_left = 0;
};

TEST(Repair, without_a_request_only_says_what_is_left) {
  DamagedTopic topic(true);
  const auto before = topic.files.contents();
  const auto repairs = repair_topic(topic.files, "data", "orders", false, topic.clock)->partitions;
  ASSERT_EQ(repairs.size(), 1u);
  EXPECT_EQ(repairs[0],
            (PartitionRepair{
                0, topic.first_left, 12, topic.first_left, false, 0, {{0, topic.first_left}}}));
  EXPECT_EQ(topic.files.contents(), before);
  EXPECT_EQ(open_log_sink(topic.files, "data", "orders", topic.clock).error().tag, "corrupt");
}

TEST(Repair, goes_on_with_the_segments_that_are_left_and_knows_their_producers) {
  DamagedTopic topic(true);
  ASSERT_TRUE(repair_topic(topic.files, "data", "orders", true, topic.clock));
  EXPECT_FALSE(repair_topic(topic.files, "data", "orders", true, topic.clock)->is_needed());
  auto sink = open_log_sink(topic.files, "data", "orders", topic.clock).value();
  const Stamp stamp = sink->producers()->enter(0, "p").value();
  EXPECT_EQ(stamp.sequence, 12u);
  EXPECT_EQ(sink->append(0, stamp, texts(12, 13)).value(), (Receipt{12, 0}));
  const auto info = describe_topic(topic.files, "data", "orders").value();
  EXPECT_EQ(info.partitions[0].first_offset, topic.first_left);
  EXPECT_EQ(info.partitions[0].end_offset, 13);
}

TEST(Repair, without_any_segment_numbers_go_on_and_nothing_is_taken_for_new) {
  DamagedTopic topic(false);
  const auto repairs = repair_topic(topic.files, "data", "orders", true, topic.clock)->partitions;
  ASSERT_EQ(repairs.size(), 1u);
  EXPECT_EQ(repairs[0], (PartitionRepair{0, 12, 12, 12, true, 0, {{0, 12}}}));
  auto sink = open_log_sink(topic.files, "data", "orders", topic.clock).value();
  EXPECT_EQ(sink->append(0, topic.stamp, texts(0, 1)).error().tag, "too_old");
  EXPECT_EQ(sink->producers()->producer_horizon_ms(0).value(), topic.clock.time_ms);
  const Stamp stamp = sink->producers()->enter(0, "p").value();
  EXPECT_EQ(stamp.sequence, 0u);
  EXPECT_EQ(sink->append(0, after(stamp, 12), texts(12, 13)).error().tag, "gap");
  EXPECT_EQ(sink->append(0, stamp, texts(12, 13)).value(), (Receipt{12, 0}));
}

TEST(Repair, leaves_a_sound_topic_alone) {
  testing::MemoryFiles files;
  TestClock clock;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  EXPECT_FALSE(repair_topic(files, "data", "orders", true, clock)->is_needed());
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock).value()->append(0, {}, texts(0, 2)));
  const auto before = files.contents();
  EXPECT_FALSE(repair_topic(files, "data", "orders", true, clock)->is_needed());
  EXPECT_EQ(files.contents(), before);
  EXPECT_EQ(repair_topic(files, "data", "none", true, clock).error().tag, "missing");
}

}  // namespace
}  // namespace once::log
