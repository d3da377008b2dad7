// SPDX-License-Identifier: Apache-2.0
// Schedules that break other logs, run against this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

// A larger sequence is persisted, then a smaller one arrives: with a high-water mark it would be
// taken for a duplicate, confirmed, and lost.
TEST(Holes, H10_a_reordered_message_is_neither_lost_nor_doubled) {
  Bench bench;
  bench.options.gaps = GapPolicy::accept;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(append(*partition, after(stamp, 5), texts(5, 6)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, after(stamp, 2), texts(2, 3)).value(), (Receipt{1, 0}));
  EXPECT_EQ(append(*partition, after(stamp, 2), texts(2, 3)).value(), (Receipt{1, 1}));
  EXPECT_EQ(append(*partition, after(stamp, 5), texts(5, 6)).value(), (Receipt{0, 1}));
  EXPECT_EQ(read_all(*partition), (std::vector<std::string>{"m5", "m2"}));
  // Also across a roll and a restart, where only the snapshot remembers.
  bench.options.segment_bytes_max = segment_bytes_least;
  partition = bench.open();
  ASSERT_TRUE(append(*partition, {}, std::vector<Message>(40, texts(9, 10)[0])));
  ASSERT_TRUE(append(*partition, {}, texts(9, 10)));
  ASSERT_GT(partition->info().segments, 1u);
  partition = bench.open();
  EXPECT_EQ(append(*partition, after(stamp, 5), texts(5, 6)).value().duplicates, 1u);
  EXPECT_EQ(append(*partition, after(stamp, 2), texts(2, 3)).value().duplicates, 1u);
  EXPECT_EQ(append(*partition, after(stamp, 3), texts(3, 4)).value().duplicates, 0u);
}

TEST(Holes, H10_with_refuse_the_larger_sequence_is_not_taken_before_the_smaller) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(append(*partition, after(stamp, 1), texts(1, 2)).error().tag, "gap");
  EXPECT_TRUE(append(*partition, stamp, texts(0, 1)));
  EXPECT_TRUE(append(*partition, after(stamp, 1), texts(1, 2)));
  EXPECT_EQ(read_all(*partition), bodies(0, 2));
}

// The id is put into the table, then persisting fails: the retry would be suppressed, and lost.
TEST(Holes, H11_a_message_whose_write_was_refused_is_new_when_it_comes_again) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "resize" ? fail(error_from_errno(ENOSPC, "extend", path)) : Status{};
  };
  auto large = texts(0, 1);
  large[0].body->assign(8 << 20, 'x');
  EXPECT_EQ(append(*partition, stamp, large).error().tag, "full");
  bench.files.refuse = nullptr;
  EXPECT_EQ(append(*partition, stamp, large).value(), (Receipt{0, 0}));
}

TEST(Holes, H11_a_duplicate_is_not_confirmed_before_its_original_is_durable) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket original = partition->stage(stamp, texts(0, 1)).value();
  const Ticket retry = partition->stage(stamp, texts(0, 1)).value();
  EXPECT_EQ(partition->outcome(retry).error().tag, "pending");
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  EXPECT_FALSE(partition->sync());
  EXPECT_EQ(partition->outcome(original).error().remedy, Remedy::recheck);
  EXPECT_EQ(partition->outcome(retry).error().remedy, Remedy::recheck);
}

// A producer restarts after a send whose answer was lost.
TEST(Holes, H12_a_restarted_producer_finds_out_what_the_log_has) {
  Bench bench;
  auto partition = bench.open();
  const Stamp first = partition->enter("orders").value();
  ASSERT_TRUE(append(*partition, first, texts(0, 3)));  // and the answer is lost
  const Stamp second = partition->enter("orders").value();
  EXPECT_EQ(second.producer, first.producer);
  EXPECT_EQ(second.sequence, 3u);
  // It counts from 0 and sends everything again: all are known, across epochs.
  EXPECT_EQ(append(*partition, {second.producer, second.epoch, 0}, texts(0, 5)).value(),
            (Receipt{0, 3}));
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  EXPECT_EQ(append(*partition, after(first, 5), texts(5, 6)).error().tag, "fenced");
}

// The producer was idle, and all its messages were deleted: others forget it then, and take any
// sequence it sends for new.
TEST(Holes, H12_a_producer_whose_messages_were_deleted_is_still_known) {
  Bench bench;
  bench.options.segment_bytes_max = segment_bytes_least;
  bench.options.retention_bytes = 0;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("orders").value();
  ASSERT_TRUE(append(*partition, stamp, texts(0, 3)));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(append(*partition, {}, texts(100, 102)));
  bench.clock.time_ms += 1000LL * 3600 * 24 * 365;
  partition = bench.open();
  ASSERT_GT(partition->first_offset(), 3);
  EXPECT_EQ(append(*partition, stamp, texts(0, 3)).value(), (Receipt{-1, 3}));
  EXPECT_EQ(append(*partition, after(stamp, 4), texts(4, 5)).error().tag, "gap");
  EXPECT_EQ(partition->stage({stamp.producer + 1, 1, 0}, texts(0, 1)).error().tag, "unknown");
}

// A batch of old and new messages: others drop all of it, or append all of it.
TEST(Holes, H25_of_a_mixed_batch_exactly_the_new_messages_are_appended) {
  for (std::uint64_t begin = 0; begin < 8; ++begin) {
    for (std::uint64_t end = begin + 1; end <= 8; ++end) {
      Bench bench;
      bench.options.gaps = GapPolicy::accept;
      auto partition = bench.open();
      const Stamp stamp = partition->enter("p").value();
      const auto some = texts(static_cast<int>(begin), static_cast<int>(end));
      ASSERT_TRUE(append(*partition, after(stamp, begin), some));
      const Receipt receipt = append(*partition, stamp, texts(0, 8)).value();
      EXPECT_EQ(receipt.duplicates, end - begin);
      EXPECT_EQ(receipt.offset, begin == 0 ? 0 : static_cast<std::int64_t>(end - begin));
      auto found = read_all(*partition);
      std::sort(found.begin(), found.end());
      EXPECT_EQ(found, bodies(0, 8)) << begin << " " << end;
    }
  }
}

TEST(Holes, H25_the_same_message_twice_in_one_group_is_appended_once) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket one = partition->stage(stamp, texts(0, 3)).value();
  const Ticket two = partition->stage(after(stamp, 1), texts(1, 5)).value();
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(one).value(), (Receipt{0, 0}));
  EXPECT_EQ(partition->outcome(two).value(), (Receipt{1, 2}));
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
}

}  // namespace
}  // namespace once::log
