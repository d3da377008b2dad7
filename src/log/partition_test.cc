// SPDX-License-Identifier: Apache-2.0
#include "log/partition.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

constexpr std::int64_t small_segment_bytes = 4096;

Status error(int number, const std::string& path) {
  return fail(error_from_errno(number, "use", path));
}

TEST(Partition, what_was_synced_is_read_back_in_order_also_after_opening_again) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(stamp.sequence, 0u);
  EXPECT_EQ(append(*partition, stamp, texts(0, 3)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, after(stamp, 3), texts(3, 5)).value(), (Receipt{3, 0}));
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  partition.reset();
  partition = bench.open();
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  EXPECT_EQ(partition->enter("p").value(), (Stamp{stamp.producer, stamp.epoch + 1, 5}));
}

// The example of docs/log_format.md.
TEST(Partition, its_bytes_are_those_of_the_worked_example) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(append(*partition, stamp, texts(0, 2)));
  const std::string& bytes = bench.files.content(bench.segment(0));
  const FrameHeader snapshot = decode_frame_header(bytes).header;
  EXPECT_EQ(snapshot.kind, FrameKind::snapshot);
  EXPECT_EQ(snapshot.version, 3u);
  EXPECT_EQ(snapshot.frame_bytes(), 108u);
  const FrameHeader enter = decode_frame_header(bytes.substr(108)).header;
  EXPECT_EQ(enter.kind, FrameKind::enter);
  EXPECT_EQ(enter.version, 1u);
  EXPECT_EQ(enter.synced_upto, 108u);
  EXPECT_EQ(enter.frame_bytes(), 97u);
  EXPECT_EQ(bytes.substr(200, 1), "p");
  const FrameHeader data = decode_frame_header(bytes.substr(205)).header;
  EXPECT_EQ(data.kind, FrameKind::data);
  EXPECT_EQ(data.synced_upto, 205u);
  EXPECT_EQ(data.frame_bytes(), 199u);
  EXPECT_EQ(data.record_count, 2u);
  const std::string batch = bytes.substr(205 + 92, 103);
  EXPECT_EQ(get_u32(batch.data() + 8), 91u);
  EXPECT_EQ(batch.substr(61, 21), std::string("\x28\0\0\0\x01\x04m0\x02\x0eonce-id\x06id0", 21));
}

TEST(Partition, nothing_is_true_before_the_sync) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket ticket = partition->stage(stamp, texts(0, 2)).value();
  EXPECT_FALSE(partition->is_settled(ticket));
  EXPECT_EQ(partition->outcome(ticket).error().tag, "pending");
  EXPECT_EQ(partition->end_offset(), 0);
  EXPECT_TRUE(partition->read(0, 1000).value().deliveries.empty());
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(ticket).value(), (Receipt{0, 0}));
}

TEST(Partition, a_delivery_carries_everything_its_message_had) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const std::vector<Message> messages{{"the id", "key", "body", {{"h", "v"}}, 1234}, {}};
  ASSERT_TRUE(append(*partition, stamp, messages));
  const ReadResult read = partition->read(0, 1000).value();
  ASSERT_EQ(read.deliveries.size(), 2u);
  const Delivery& first = read.deliveries[0];
  EXPECT_EQ(first.id, "the id");
  EXPECT_EQ(first.key, "key");
  EXPECT_EQ(first.body, "body");
  EXPECT_EQ(*first.header("h"), "v");
  EXPECT_EQ(first.header(id_header), nullptr);  // it is the id
  EXPECT_EQ(first.timestamp_ms, 1234);
  EXPECT_EQ(first.stamp, stamp);
  EXPECT_EQ(read.deliveries[1].timestamp_ms, bench.clock.time_ms);
  EXPECT_EQ(read.deliveries[1].stamp, after(stamp, 1));
}

TEST(Partition, one_group_is_one_write_and_one_sync) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  int writes = 0;
  int syncs = 0;
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    if (path.ends_with(".log") && call == "write") ++writes;
    if (call == "sync") ++syncs;
    return {};
  };
  for (std::uint64_t i = 0; i < 100; ++i)
    ASSERT_TRUE(
        partition->stage(after(stamp, i), texts(static_cast<int>(i), static_cast<int>(i) + 1)));
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(read_all(*partition), bodies(0, 100));
}

TEST(Partition, messages_without_a_stamp_are_appended_each_time) {
  Bench bench;
  auto partition = bench.open();
  EXPECT_EQ(append(*partition, {}, texts(0, 2)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, {}, texts(0, 2)).value(), (Receipt{2, 0}));
}

TEST(Partition, a_duplicate_gets_the_original_offset) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(append(*partition, {}, texts(100, 107)));
  ASSERT_TRUE(append(*partition, stamp, texts(0, 5)));
  EXPECT_EQ(append(*partition, stamp, texts(0, 5)).value(), (Receipt{7, 5}));
  EXPECT_EQ(append(*partition, after(stamp, 2), texts(2, 4)).value(), (Receipt{9, 2}));
  EXPECT_EQ(partition->end_offset(), 12);
}

TEST(Partition, a_duplicate_of_something_staged_waits_for_its_sync) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(partition->stage(stamp, texts(0, 2)));
  const Ticket again = partition->stage(stamp, texts(0, 2)).value();
  EXPECT_EQ(partition->outcome(again).error().tag, "pending");
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(again).value(), (Receipt{0, 2}));
  EXPECT_EQ(read_all(*partition), bodies(0, 2));
}

TEST(Partition, the_original_offset_is_found_in_the_log_when_the_table_has_forgotten_it) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const int count = static_cast<int>(ranges_remembered) + 20;
  for (int i = 0; i < count; ++i) {  // each followed by another's, so that ranges do not join
    ASSERT_TRUE(append(*partition, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    ASSERT_TRUE(append(*partition, {}, texts(1000, 1001)));
  }
  for (const int i : {0, 1, 10, count - 1})
    EXPECT_EQ(
        append(*partition, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)).value(),
        (Receipt{2 * i, 1}));
  // And after a restart, when it remembers only what is in the last segment.
  partition = bench.open();
  const Stamp again = partition->enter("p").value();
  EXPECT_EQ(again.sequence, static_cast<std::uint64_t>(count));
  EXPECT_EQ(append(*partition, {again.producer, again.epoch, 10}, texts(10, 11)).value(),
            (Receipt{20, 1}));
}

TEST(Partition, everything_sent_again_after_a_restart_gets_its_original_offsets) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  bench.options.gaps = GapPolicy::accept;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  constexpr int count = 150;
  // Backwards, and between the messages of others: the log has them in no order.
  for (int i = count - 1; i >= 0; --i) {
    ASSERT_TRUE(append(*partition, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    if (i % 3 == 0) {
      ASSERT_TRUE(append(*partition, {}, texts(1000, 1002)));
    }
  }
  partition = bench.open();
  std::map<std::string, std::int64_t> places;
  const auto all = read_all(*partition);
  for (std::size_t i = 0; i < all.size(); ++i) places[all[i]] = static_cast<std::int64_t>(i);
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(
        append(*partition, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)).value(),
        (Receipt{places[fmt::format("m{}", i)], 1}));
}

TEST(Partition, a_gap_is_refused_and_changes_nothing) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const auto gap = partition->stage(after(stamp, 1), texts(1, 2));
  EXPECT_EQ(gap.error().tag, "gap");
  EXPECT_EQ(gap.error().remedy, Remedy::retry);
  EXPECT_EQ(append(*partition, stamp, texts(0, 1)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, after(stamp, 1), texts(1, 2)).value(), (Receipt{1, 0}));
}

TEST(Partition, with_accept_the_predecessors_are_still_new_when_they_come) {
  Bench bench;
  bench.options.gaps = GapPolicy::accept;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(append(*partition, after(stamp, 3), texts(3, 5)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, stamp, texts(0, 7)).value(), (Receipt{2, 2}));
  const std::vector<std::string> expected{"m3", "m4", "m0", "m1", "m2", "m5", "m6"};
  EXPECT_EQ(read_all(*partition), expected);
  EXPECT_EQ(read_all(*bench.open()), expected);
}

TEST(Partition, with_hold_batches_wait_for_their_predecessors_and_go_in_order) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket last = partition->stage(after(stamp, 4), texts(4, 6)).value();
  const Ticket middle = partition->stage(after(stamp, 2), texts(2, 4)).value();
  const Ticket again = partition->stage(after(stamp, 2), texts(2, 4)).value();
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(last).error().tag, "pending");
  const Ticket first = partition->stage(stamp, texts(0, 2)).value();
  EXPECT_EQ(partition->outcome(last).error().tag, "pending");
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->outcome(first).value(), (Receipt{0, 0}));
  EXPECT_EQ(partition->outcome(middle).value(), (Receipt{2, 0}));
  EXPECT_EQ(partition->outcome(again).value(), (Receipt{2, 0}));
  EXPECT_EQ(partition->outcome(last).value(), (Receipt{4, 0}));
  EXPECT_EQ(read_all(*partition), bodies(0, 6));
}

TEST(Partition, the_buffer_of_held_batches_is_bounded_and_can_be_given_up) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  bench.options.hold_count_max = 2;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket held = partition->stage(after(stamp, 2), texts(2, 3)).value();
  ASSERT_TRUE(partition->stage(after(stamp, 3), texts(3, 4)));
  EXPECT_EQ(partition->stage(after(stamp, 4), texts(4, 5)).error().tag, "gap");
  EXPECT_TRUE(partition->give_up(held));
  EXPECT_EQ(partition->outcome(held).error().tag, "gap");
  EXPECT_FALSE(partition->give_up(held));
  EXPECT_TRUE(partition->stage(after(stamp, 4), texts(4, 5)));
  bench.options.hold_bytes_max = 100;
  auto small = bench.open();
  const Stamp other = small->enter("q").value();
  Message big;
  big.body->assign(200, 'x');
  EXPECT_EQ(small->stage(after(other, 1), std::span(&big, 1)).error().tag, "gap");
}

TEST(Partition, who_was_held_is_fenced_by_a_new_epoch) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  const Ticket held = partition->stage(after(stamp, 2), texts(2, 3)).value();
  ASSERT_TRUE(partition->enter("p"));
  EXPECT_EQ(partition->outcome(held).error().tag, "fenced");
}

TEST(Partition, an_old_epoch_is_fenced_as_soon_as_the_new_one_is_staged) {
  Bench bench;
  auto partition = bench.open();
  const Stamp old = partition->enter("p").value();
  ASSERT_TRUE(partition->stage_entry("p"));
  EXPECT_EQ(partition->stage(old, texts(0, 1)).error().tag, "fenced");
}

TEST(Partition, a_failed_sync_poisons_until_it_is_opened_again) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(append(*partition, stamp, texts(0, 2)));
  const Ticket lost = partition->stage(after(stamp, 2), texts(2, 4)).value();
  int syncs = 0;
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    if (call != "sync") return {};
    return ++syncs == 1 ? error(EIO, path) : Status{};
  };
  EXPECT_EQ(partition->sync().error().remedy, Remedy::recheck);
  EXPECT_EQ(partition->outcome(lost).error().remedy, Remedy::recheck);
  EXPECT_EQ(partition->stage(after(stamp, 2), texts(2, 4)).error().tag, "poisoned");
  EXPECT_EQ(partition->stage(after(stamp, 2), texts(2, 4)).error().remedy, Remedy::stop);
  EXPECT_EQ(partition->stage_entry("q").error().tag, "poisoned");
  EXPECT_TRUE(partition->sync());  // nothing is written
  EXPECT_EQ(partition->close().error().tag, "poisoned");
  EXPECT_EQ(syncs, 1);
  EXPECT_EQ(read_all(*partition), bodies(0, 2));  // what was durable can be read
  bench.files.refuse = nullptr;
  partition = bench.open();
  EXPECT_FALSE(partition->is_poisoned());
  const Stamp again = partition->enter("p").value();
  EXPECT_EQ(append(*partition, {again.producer, again.epoch, 2}, texts(2, 4)).value().offset, 2);
  EXPECT_EQ(read_all(*partition), bodies(0, 4));
}

TEST(Partition, a_failed_write_poisons_too) {
  Bench bench;
  auto partition = bench.open();
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "write" ? error(ENOSPC, path) : Status{};
  };
  const Ticket ticket = partition->stage({}, texts(0, 1)).value();
  EXPECT_EQ(partition->sync().error().remedy, Remedy::recheck);
  EXPECT_EQ(partition->outcome(ticket).error().remedy, Remedy::recheck);
  EXPECT_TRUE(partition->is_poisoned());
}

TEST(Partition, a_full_disk_refuses_before_anything_is_changed) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(append(*partition, stamp, texts(0, 2)));
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "resize" || call == "create" ? error(ENOSPC, path) : Status{};
  };
  std::vector<Message> large = texts(2, 4);
  large[0].body->assign(5 << 20, 'x');
  const Ticket ticket = partition->stage(after(stamp, 2), large).value();
  const Ticket behind = partition->stage(after(stamp, 4), texts(4, 5)).value();
  const auto contents = bench.files.contents();
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (attempt > 0) {
      ASSERT_TRUE(partition->stage(after(stamp, 2), large));
    }
    const Status synced = partition->sync();
    EXPECT_EQ(synced.error().remedy, Remedy::retry);
    EXPECT_EQ(synced.error().tag, "full");
  }
  EXPECT_EQ(partition->outcome(ticket).error().tag, "full");
  EXPECT_EQ(partition->outcome(behind).error().tag, "full");
  EXPECT_EQ(bench.files.contents(), contents);
  EXPECT_FALSE(partition->is_poisoned());
  bench.files.refuse = nullptr;
  EXPECT_EQ(append(*partition, after(stamp, 2), large).value(), (Receipt{2, 0}));
  EXPECT_EQ(read_all(*partition).size(), 4u);
}

TEST(Partition, a_disk_that_is_full_at_a_roll_refuses_and_goes_on_when_there_is_room) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  auto partition = bench.open();
  std::vector<Message> message = texts(0, 1);
  message[0].body->assign(2000, 'x');
  ASSERT_TRUE(append(*partition, {}, message));
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    const bool is_new = !path.ends_with("00000.log");
    return call == "create" || (call == "resize" && is_new) ? error(ENOSPC, path) : Status{};
  };
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    const auto receipt = append(*partition, {}, message);
    if (!receipt) {
      EXPECT_EQ(receipt.error().tag, "full");
      ++refused;
    }
  }
  EXPECT_GE(refused, 3);
  EXPECT_EQ(partition->info().segments, 1u);
  bench.files.refuse = nullptr;
  ASSERT_TRUE(append(*partition, {}, message));
  EXPECT_EQ(partition->info().segments, 2u);
  const auto end = partition->end_offset();
  EXPECT_EQ(bench.open()->end_offset(), end);
}

TEST(Partition, a_failure_at_any_step_of_a_roll_loses_nothing) {
  for (int failing = 1; failing < 40; ++failing) {
    Bench bench;
    bench.options.segment_bytes_max = small_segment_bytes;
    auto partition = bench.open();
    const Stamp stamp = partition->enter("p").value();
    int calls = 0;
    bench.files.refuse = [&](const std::string&, const std::string& path) -> Status {
      return ++calls == failing ? error(EIO, path) : Status{};
    };
    std::uint64_t acknowledged = 0;
    for (std::uint64_t i = 0; i < 6; ++i) {
      auto message = texts(static_cast<int>(i), static_cast<int>(i) + 1);
      message[0].body->append(1500, 'x');
      if (!append(*partition, after(stamp, i), message)) break;
      acknowledged = i + 1;
    }
    bench.files.refuse = nullptr;
    partition = bench.open();
    ASSERT_GE(read_all(*partition).size(), acknowledged) << failing;
    EXPECT_EQ(partition->enter("p").value().sequence, read_all(*partition).size()) << failing;
  }
}

TEST(Partition, segments_are_rolled_and_each_starts_with_the_producers) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  for (std::uint64_t i = 0; i < 30; ++i) {
    auto message = texts(static_cast<int>(i), static_cast<int>(i) + 1);
    message[0].key.emplace(500, 'k');
    ASSERT_TRUE(append(*partition, after(stamp, i), message));
  }
  EXPECT_GT(partition->info().segments, 3u);
  EXPECT_EQ(read_all(*partition), bodies(0, 30));
  for (std::int64_t offset = 0; offset < 30; ++offset)
    EXPECT_EQ(partition->read(offset, 1).value().deliveries.front().offset, offset);
  partition = bench.open();
  EXPECT_EQ(read_all(*partition), bodies(0, 30));
  EXPECT_EQ(partition->stage(stamp, texts(0, 1)).value().verdict.receipt().duplicates, 1u);
  EXPECT_EQ(partition->enter("p").value().sequence, 30u);
}

TEST(Partition, retention_by_size_deletes_whole_old_segments_and_no_producer) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  bench.options.retention_bytes = 3 * small_segment_bytes;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  for (std::uint64_t i = 0; i < 60; ++i) {
    auto message = texts(static_cast<int>(i), static_cast<int>(i) + 1);
    message[0].key.emplace(500, 'k');
    ASSERT_TRUE(append(*partition, after(stamp, i), message));
  }
  const std::int64_t first = partition->first_offset();
  EXPECT_GT(first, 20);
  EXPECT_LE(partition->info().bytes, 5 * small_segment_bytes);
  EXPECT_EQ(read_all(*partition), bodies(static_cast<int>(first), 60));
  EXPECT_EQ(partition->read(first - 1, 100).error().tag, "gone");
  partition = bench.open();
  EXPECT_GE(partition->first_offset(), first);
  // A message that was deleted is still known, only its place is not.
  EXPECT_EQ(append(*partition, stamp, texts(0, 1)).value(), (Receipt{-1, 1}));
  EXPECT_EQ(partition->enter("p").value().sequence, 60u);
}

TEST(Partition, retention_by_time_goes_by_the_time_of_the_messages) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  bench.options.retention_ms = 1000;
  auto partition = bench.open();
  for (int i = 0; i < 20; ++i) {
    auto message = texts(i, i + 1);
    message[0].key.emplace(1000, 'k');
    ASSERT_TRUE(append(*partition, {}, message));
    bench.clock.time_ms += 100;
  }
  EXPECT_GT(partition->first_offset(), 0);
  EXPECT_LT(partition->first_offset(), 12);
  bench.clock.time_ms += 10'000;
  ASSERT_TRUE(partition->retain());
  EXPECT_EQ(partition->info().segments, 1u);  // the one that is written stays
  const std::int64_t first = partition->first_offset();
  EXPECT_EQ(read_all(*bench.open()), bodies(static_cast<int>(first), 20));
}

TEST(Partition, a_crash_in_the_middle_of_retention_is_finished_when_it_is_opened) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  auto partition = bench.open();
  for (int i = 0; i < 30; ++i) {
    auto message = texts(i, i + 1);
    message[0].key.emplace(500, 'k');
    ASSERT_TRUE(append(*partition, {}, message));
  }
  partition.reset();
  bench.options.retention_bytes = 0;
  const auto contents = bench.files.contents();
  for (int kept = 0; kept < 5; ++kept) {
    bench.files.set_contents(contents);
    int removed = 0;
    bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
      if (call != "remove" || !path.ends_with(".log")) return {};
      return removed++ == kept ? error(EIO, path) : Status{};
    };
    const bool opened = bench.try_open().has_value();
    bench.files.refuse = nullptr;
    bench.options.retention_bytes = -1;
    auto again = bench.open();
    EXPECT_EQ(again->info().segments, 1u) << kept << opened;
    EXPECT_EQ(read_all(*again), bodies(static_cast<int>(again->first_offset()), 30));
    bench.options.retention_bytes = 0;
  }
}

TEST(Partition, sizes_are_limited_on_both_sides) {
  Bench bench;
  auto partition = bench.open();
  Message message;
  message.body->assign(message_bytes_max - 100, 'x');
  EXPECT_TRUE(append(*partition, {}, {message}));
  message.body->assign(message_bytes_max + 1, 'x');
  const auto large = partition->stage({}, std::span(&message, 1));
  EXPECT_EQ(large.error().tag, "too_large");
  EXPECT_EQ(large.error().remedy, Remedy::park);
  const std::vector<Message> many(batch_count_max);
  EXPECT_TRUE(partition->stage({}, many));
  const std::vector<Message> too_many(batch_count_max + 1);
  EXPECT_EQ(partition->stage({}, too_many).error().tag, "limit");
  ASSERT_TRUE(partition->sync());
  EXPECT_EQ(partition->end_offset(), 1 + static_cast<std::int64_t>(batch_count_max));
  EXPECT_EQ(partition->stage({1, 1, UINT64_MAX}, texts(0, 1)).error().tag, "limit");
  EXPECT_EQ(append(*partition, {}, {}).value().offset, partition->end_offset());
  bench.options.segment_bytes_max = segment_bytes_least - 1;
  EXPECT_EQ(bench.try_open().error().tag, "config");
}

TEST(Partition, a_backlog_beyond_the_limit_has_to_be_synced_first) {
  Bench bench;
  auto partition = bench.open();
  std::vector<Message> large(2);
  for (Message& message : large) message.body->assign(15 << 20, 'x');
  ASSERT_TRUE(partition->stage({}, large));
  ASSERT_TRUE(partition->stage({}, large));
  EXPECT_EQ(partition->stage({}, large).error().tag, "backlog");
  ASSERT_TRUE(partition->sync());
  EXPECT_TRUE(partition->stage({}, large));
}

TEST(Partition, a_read_of_any_size_gives_whole_messages_and_at_least_one) {
  Bench bench;
  auto partition = bench.open();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(append(*partition, {}, texts(i, i + 1)));
  std::vector<Message> large = texts(50, 51);
  large[0].key.emplace(100'000, 'k');
  ASSERT_TRUE(append(*partition, {}, large));
  for (const std::size_t bytes : {1u, 300u, 5000u, 50'000u, 1'000'000u})
    EXPECT_EQ(try_read_all(*partition, bytes).value(), bodies(0, 51)) << bytes;
  EXPECT_EQ(partition->read(52, 10).error().tag, "gone");
  EXPECT_EQ(partition->read(-1, 10).error().tag, "gone");
}

TEST(Partition, messages_are_found_by_their_time) {
  Bench bench;
  bench.options.segment_bytes_max = small_segment_bytes;
  auto partition = bench.open();
  const std::int64_t begin_ms = bench.clock.time_ms;
  for (int i = 0; i < 40; ++i) {
    auto message = texts(i, i + 1);
    message[0].key.emplace(300, 'k');
    ASSERT_TRUE(append(*partition, {}, message));
    bench.clock.time_ms += 10;
  }
  EXPECT_EQ(partition->offset_at(0).value(), 0);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(partition->offset_at(begin_ms + i * 10).value(), i);
    EXPECT_EQ(partition->offset_at(begin_ms + i * 10 - 5).value(), i);
  }
  EXPECT_EQ(partition->offset_at(begin_ms + 1000).value(), 40);
}

}  // namespace
}  // namespace once::log
