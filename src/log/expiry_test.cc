// SPDX-License-Identifier: Apache-2.0
// Producers that cost nothing lasting: unnamed ones, and named ones behind the retention.
#include <gtest/gtest.h>

#include <string>

#include "log/limits.h"
#include "log/log_testing.h"
#include "log/verify.h"

namespace once::log {
namespace {

constexpr std::int64_t day_ms = 86'400'000;

TEST(Guest, leaves_nothing_behind_and_its_resends_are_recognised_while_it_is_here) {
  Bench bench;
  auto partition = bench.open();
  const auto before = bench.files.content(bench.segment(0));
  const Stamp guest = partition->enter("").value();
  const Stamp other = partition->enter("").value();
  EXPECT_EQ(guest.sequence, 0u);
  EXPECT_NE(guest.producer, other.producer);
  EXPECT_EQ(bench.files.content(bench.segment(0)), before);
  EXPECT_EQ(append(*partition, guest, texts(0, 3)).value(), (Receipt{0, 0}));
  EXPECT_EQ(append(*partition, guest, texts(0, 3)).value(), (Receipt{0, 3}));
  EXPECT_EQ(append(*partition, after(guest, 2), texts(2, 5)).value().duplicates, 1u);
  EXPECT_EQ(append(*partition, after(guest, 9), texts(9, 10)).error().tag, "gap");
  EXPECT_EQ(append(*partition, other, texts(5, 6)).value(), (Receipt{5, 0}));
  EXPECT_EQ(partition->info().producers, 0u);
  EXPECT_EQ(read_all(*partition), bodies(0, 6));
  partition = bench.open();
  EXPECT_EQ(read_all(*partition), bodies(0, 6));
  EXPECT_EQ(partition->info().producers, 0u);
  // It does not come back, and what it sends is not taken for new.
  EXPECT_EQ(append(*partition, guest, texts(0, 3)).error().tag, "unknown");
  EXPECT_TRUE(verify_partition(bench.files, bench.directory));
}

TEST(Guest, what_was_refused_is_new_when_it_comes_again) {
  Bench bench;
  auto partition = bench.open();
  const Stamp guest = partition->enter("").value();
  ASSERT_TRUE(append(*partition, guest, texts(0, 1)));
  bench.files.refuse = [](const std::string& call, const std::string& path) -> Status {
    if (call == "resize") return fail(error_from_errno(ENOSPC, call, path));
    return {};
  };
  auto large = texts(1, 2);
  large[0].body->append(9 << 20, 'x');
  EXPECT_EQ(append(*partition, after(guest, 1), large).error().tag, "full");
  bench.files.refuse = nullptr;
  EXPECT_EQ(append(*partition, after(guest, 1), large).value(), (Receipt{1, 0}));
  EXPECT_EQ(append(*partition, after(guest, 1), large).value(), (Receipt{1, 1}));
  EXPECT_EQ(partition->end_offset(), 2);
}

TEST(Guest, hundred_thousand_runs_without_a_name_do_not_end_a_topic) {
  Bench bench;
  auto partition = bench.open();
  const Stamp first = partition->enter("").value();
  for (std::size_t i = 0; i < producers_max + 10; ++i) ASSERT_TRUE(partition->stage_entry("")) << i;
  EXPECT_EQ(partition->info().producers, 0u);
  EXPECT_TRUE(partition->enter("named"));
  // Who was here too long ago is unknown, never new.
  EXPECT_EQ(partition->stage(first, texts(0, 1)).error().tag, "unknown");
}

// Sends until the oldest messages are deleted and a new segment has begun.
void send_and_roll(Bench& bench, Partition& partition, int& sent) {
  for (int i = 0; i < 12; ++i, ++sent) {
    auto some = texts(sent, sent + 1);
    some[0].body->append(200, 'x');
    ASSERT_TRUE(append(partition, {}, some));
  }
  ASSERT_TRUE(partition.retain());
  ASSERT_GT(bench.clock.time_ms, 0);
}

struct Expiring {
  Bench bench;
  std::unique_ptr<Partition> partition;
  Stamp stamp;
  int sent = 3;

  explicit Expiring(std::int64_t retention_ms, std::int64_t retention_bytes = -1) {
    bench.options.segment_bytes_max = segment_bytes_least;
    bench.options.retention_ms = retention_ms;
    bench.options.retention_bytes = retention_bytes;
    partition = bench.open();
    stamp = partition->enter("p").value();
    EXPECT_TRUE(append(*partition, stamp, texts(0, 3)));
  }
  void after_days(std::int64_t days) {
    bench.clock.time_ms += days * day_ms;
    send_and_roll(bench, *partition, sent);
  }
};

TEST(Expiry, a_producer_is_forgotten_behind_retention_and_its_resends_are_too_old) {
  Expiring log(day_ms);
  log.after_days(0);  // p was last seen when this segment began
  log.after_days(6);
  EXPECT_GT(log.partition->first_offset(), 3);
  EXPECT_EQ(log.partition->info().producers, 1u);
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).value().duplicates, 3u);
  EXPECT_EQ(log.partition->producer_horizon_ms(), 0);
  log.after_days(2);
  EXPECT_EQ(log.partition->info().producers, 0u);
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).error().tag, "too_old");
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).error().remedy, Remedy::stop);
  const std::int64_t horizon_ms = log.partition->producer_horizon_ms();
  EXPECT_GT(horizon_ms, 0);
  EXPECT_LT(horizon_ms, log.bench.clock.time_ms - 7 * day_ms);
  // The same after a restart: the horizon is in the log.
  log.partition = log.bench.open();
  EXPECT_EQ(log.partition->producer_horizon_ms(), horizon_ms);
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).error().tag, "too_old");
  const Stamp again = log.partition->enter("p").value();
  EXPECT_EQ(again.sequence, 0u);
  EXPECT_NE(again.producer, log.stamp.producer);
  EXPECT_EQ(append(*log.partition, after(again, 3), texts(3, 4)).error().tag, "gap");
  const auto verified = verify_partition(log.bench.files, log.bench.directory);
  EXPECT_TRUE(verified) << verified.error().text;
}

TEST(Expiry, retention_by_size_forgets_too_but_not_before_a_week) {
  Expiring log(-1, 2000);
  log.after_days(0);
  log.after_days(6);
  EXPECT_EQ(log.partition->info().producers, 1u);
  log.after_days(2);
  log.after_days(0);
  EXPECT_EQ(log.partition->info().producers, 0u);
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).error().tag, "too_old");
}

TEST(Expiry, without_a_retention_nobody_is_forgotten) {
  Expiring log(-1);
  for (int i = 0; i < 4; ++i) log.after_days(1000);
  EXPECT_EQ(log.partition->info().producers, 1u);
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).value(), (Receipt{0, 3}));
}

TEST(Expiry, who_comes_back_in_time_stays_known) {
  Expiring log(day_ms);
  for (int i = 0; i < 5; ++i) {
    log.after_days(5);
    const Stamp stamp = log.partition->enter("p").value();
    EXPECT_EQ(stamp.producer, log.stamp.producer);
    EXPECT_EQ(stamp.sequence, 3u);
  }
}

// The group that makes the segment full carries the producer that would be forgotten with it.
TEST(Expiry, who_sends_in_the_group_that_begins_a_segment_is_not_forgotten) {
  Expiring log(day_ms);
  log.after_days(0);
  log.after_days(2);
  log.bench.clock.time_ms += 30 * day_ms;
  auto some = texts(100, 103);
  for (Message& message : some) message.body->append(2000, 'x');
  EXPECT_EQ(append(*log.partition, after(log.stamp, 3), some).value().duplicates, 0u);
  EXPECT_EQ(append(*log.partition, after(log.stamp, 3), some).value().duplicates, 3u);
  log.partition = log.bench.open();
  EXPECT_EQ(append(*log.partition, log.stamp, texts(0, 3)).value().duplicates, 3u);
  EXPECT_EQ(append(*log.partition, after(log.stamp, 3), some).value().duplicates, 3u);
}

TEST(Expiry, a_first_message_that_is_not_the_first_is_never_the_beginning) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("relay").value();
  EXPECT_EQ(stamp.sequence, 0u);
  const auto refused = append(*partition, after(stamp, 5), texts(5, 6));
  EXPECT_EQ(refused.error().tag, "gap");
  EXPECT_NE(refused.error().text.find("made anew"), std::string::npos) << refused.error().text;
  EXPECT_EQ(partition->end_offset(), 0);
}

}  // namespace
}  // namespace once::log
