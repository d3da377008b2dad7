// SPDX-License-Identifier: Apache-2.0
#include "log/producer_table.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <map>
#include <optional>
#include <string>

#include "log/frame.h"
#include "log/limits.h"

namespace once::log {
namespace {

using Kind = Check::Kind;

ProducerTable table_with(std::uint64_t producer, std::uint32_t epoch = 1) {
  ProducerTable table;
  EXPECT_TRUE(table.apply_entry("p", producer, epoch, 0));
  return table;
}

TEST(ProducerTable, tells_fresh_duplicate_mixed_and_gap_apart) {
  ProducerTable table = table_with(7);
  EXPECT_EQ(table.check({7, 1, 0}, 5, GapPolicy::refuse).kind, Kind::fresh);
  ASSERT_TRUE(table.apply({7, 1, 0}, 5, 100));
  EXPECT_EQ(table.check({7, 1, 0}, 5, GapPolicy::refuse).kind, Kind::duplicate);
  EXPECT_EQ(table.check({7, 1, 5}, 1, GapPolicy::refuse).kind, Kind::fresh);
  const Check mixed = table.check({7, 1, 3}, 4, GapPolicy::refuse);
  EXPECT_EQ(mixed.kind, Kind::mixed);
  EXPECT_EQ(mixed.fresh, (std::vector<Interval>{{5, 7}}));
  EXPECT_EQ(mixed.duplicates, 2u);
  const Check gap = table.check({7, 1, 6}, 1, GapPolicy::refuse);
  EXPECT_EQ(gap.kind, Kind::gap);
  EXPECT_EQ(gap.next_sequence, 5u);
  EXPECT_EQ(table.check({7, 1, 6}, 1, GapPolicy::accept).kind, Kind::fresh);
}

TEST(ProducerTable, compares_sequences_across_epochs_and_epochs_only_fence) {
  ProducerTable table = table_with(7, 1);
  ASSERT_TRUE(table.apply({7, 1, 0}, 3, 0));
  ASSERT_TRUE(table.apply_entry("p", 7, 2, 0));
  EXPECT_EQ(table.check({7, 1, 3}, 1, GapPolicy::refuse).kind, Kind::fenced);
  EXPECT_EQ(table.check({7, 2, 0}, 3, GapPolicy::refuse).kind, Kind::duplicate);
  EXPECT_EQ(table.check({7, 2, 3}, 1, GapPolicy::refuse).kind, Kind::fresh);
  EXPECT_EQ(table.check({7, 3, 3}, 1, GapPolicy::refuse).kind, Kind::unknown);
}

TEST(ProducerTable, refuses_who_never_entered) {
  const ProducerTable table = table_with(7);
  EXPECT_EQ(table.check({8, 1, 0}, 1, GapPolicy::accept).kind, Kind::unknown);
}

TEST(ProducerTable, a_name_gets_its_id_once_and_a_larger_epoch_each_time) {
  ProducerTable table;
  std::uint64_t drawn = 20;
  const auto random = [&] { return drawn++; };
  const Stamp first = table.next_entry("a", random).value();
  EXPECT_EQ(first, (Stamp{10, 1, 0}));
  ASSERT_TRUE(table.apply_entry("a", first.producer, first.epoch, 0));
  ASSERT_TRUE(table.apply(first, 4, 0));
  EXPECT_EQ(table.next_entry("a", random).value(), (Stamp{10, 2, 4}));
  EXPECT_EQ(table.next_entry("b", random).value().producer, 11u);  // 21 >> 1 is taken
}

std::optional<std::int64_t> offset_of(const ProducerTable& table, std::uint64_t producer,
                                      std::uint64_t sequence) {
  const auto places = table.places_of(producer, {sequence, sequence + 1});
  if (places.empty()) return std::nullopt;
  EXPECT_EQ(places.size(), 1u);
  return places[0].offset + static_cast<std::int64_t>(sequence - places[0].sequences.begin);
}

TEST(ProducerTable, names_and_epochs_have_limits) {
  ProducerTable table;
  const auto random = [] { return std::uint64_t{1000}; };
  EXPECT_EQ(table.next_entry("", random).error().tag, "name");
  EXPECT_TRUE(table.next_entry(std::string(producer_name_bytes_max, 'n'), random));
  EXPECT_EQ(table.next_entry(std::string(producer_name_bytes_max + 1, 'n'), random).error().tag,
            "name");
  ASSERT_TRUE(table.apply_entry("last", 5, std::numeric_limits<std::uint32_t>::max(), 0));
  EXPECT_EQ(table.next_entry("last", random).error().tag, "limit");
}

TEST(ProducerTable, holes_are_limited_and_filling_the_first_is_always_possible) {
  ProducerTable table = table_with(7);
  std::uint64_t sequence = 1;
  while (table.check({7, 1, sequence}, 1, GapPolicy::accept).kind == Kind::fresh) {
    ASSERT_TRUE(table.apply({7, 1, sequence}, 1, static_cast<std::int64_t>(sequence)));
    sequence += 2;
  }
  EXPECT_EQ(table.check({7, 1, sequence}, 1, GapPolicy::accept).kind, Kind::limit);
  EXPECT_EQ(sequence, 2 * intervals_max + 1);
  EXPECT_EQ(table.check({7, 1, 0}, 1, GapPolicy::accept).kind, Kind::fresh);
}

TEST(ProducerTable, remembers_where_the_last_ranges_are) {
  ProducerTable table = table_with(7);
  // Neighbours in sequence and offset are one range.
  ASSERT_TRUE(table.apply({7, 1, 0}, 10, 0));
  ASSERT_TRUE(table.apply({7, 1, 10}, 10, 10));
  for (std::uint64_t i = 0; i < ranges_remembered - 1; ++i)
    ASSERT_TRUE(table.apply({7, 1, 20 + i}, 1, static_cast<std::int64_t>(100 + 2 * i)));
  EXPECT_EQ(offset_of(table, 7, 15), 15);
  EXPECT_EQ(offset_of(table, 7, 20), 100);
  ASSERT_TRUE(table.apply({7, 1, 20 + ranges_remembered - 1}, 1, 1000));
  EXPECT_EQ(offset_of(table, 7, 15), std::nullopt);
  EXPECT_EQ(offset_of(table, 7, 20), 100);
}

TEST(ProducerTable, a_log_that_contradicts_itself_is_not_applied) {
  ProducerTable table = table_with(7, 3);
  ASSERT_TRUE(table.apply({7, 3, 0}, 2, 0));
  EXPECT_FALSE(table.apply({7, 3, 1}, 1, 2));     // again
  EXPECT_FALSE(table.apply({7, 2, 2}, 1, 2));     // an old epoch
  EXPECT_FALSE(table.apply({8, 1, 0}, 1, 2));     // never entered
  EXPECT_FALSE(table.apply_entry("p", 7, 3, 0));  // an epoch that does not grow
  EXPECT_FALSE(table.apply_entry("p", 9, 4, 0));  // another id
  EXPECT_FALSE(table.apply_entry("q", 7, 1, 0));  // an id that is taken
  EXPECT_FALSE(table.apply_entry("r", 0, 1, 0));  // the id that means "no stamp"
}

std::string snapshot_of(const ProducerTable& table) {
  Buffer buffer;
  table.encode(buffer);
  return std::string(buffer.view());
}

Result<ProducerTable> decoded(std::string_view snapshot, std::int64_t base_offset = 1'000'000) {
  return ProducerTable::decode(snapshot, snapshot_version, base_offset);
}

TEST(ProducerTable, a_truncated_or_longer_snapshot_is_refused) {
  ProducerTable table = table_with(7);
  ASSERT_TRUE(table.apply({7, 1, 0}, 2, 0));
  ASSERT_TRUE(table.apply({7, 1, 5}, 2, 2));
  const std::string good = snapshot_of(table);
  EXPECT_TRUE(decoded(good).value().continues(table));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(decoded(good.substr(0, length))) << length;
  EXPECT_FALSE(decoded(good + '\0'));
}

TEST(ProducerTable, a_producer_expires_when_all_it_did_is_deleted_and_it_was_not_seen_for_long) {
  ProducerTable table = table_with(7);
  ASSERT_TRUE(table.apply({7, 1, 0}, 5, 10));
  EXPECT_TRUE(table.expired(100, 5000).empty());  // it is active
  table.begin_segment(1000);
  EXPECT_TRUE(table.expired(15, 1000).empty());  // seen at 1000, which is not before 1000
  EXPECT_TRUE(table.expired(14, 1001).empty());  // its last message is number 14
  EXPECT_EQ(table.expired(15, 1001), std::vector<std::uint64_t>{7});
  ASSERT_TRUE(table.apply_entry("p", 7, 2, 20));  // who comes back is active again
  EXPECT_TRUE(table.expired(100, 5000).empty());
  table.begin_segment(2000);
  EXPECT_TRUE(table.expired(19, 5000).empty());
  EXPECT_EQ(table.expired(20, 5000), std::vector<std::uint64_t>{7});
}

TEST(ProducerTable, what_was_forgotten_leaves_a_horizon_that_survives_a_snapshot) {
  ProducerTable before = table_with(7);
  ASSERT_TRUE(before.apply_entry("q", 8, 1, 3));
  before.begin_segment(1000);
  ProducerTable after = before;
  EXPECT_EQ(after.horizon_ms(), 0);
  const std::uint64_t gone = 7;
  after.forget(std::span(&gone, 1));
  EXPECT_EQ(after.horizon_ms(), 1000);
  EXPECT_FALSE(after.knows(7));
  EXPECT_TRUE(after.knows(8));
  EXPECT_EQ(after.check({7, 1, 0}, 1, GapPolicy::accept).kind, Kind::unknown);
  const ProducerTable read = decoded(snapshot_of(after)).value();
  EXPECT_EQ(read.horizon_ms(), 1000);
  EXPECT_TRUE(read.continues(before));   // who is missing is behind the horizon
  EXPECT_FALSE(before.continues(read));  // but nobody comes back from there
  EXPECT_EQ(read.expired(3, 1001), std::vector<std::uint64_t>{8});
}

TEST(ProducerTable, a_snapshot_of_the_first_version_is_read_and_forgets_nobody_early) {
  Buffer bytes;
  put_u32(bytes.grow(4), 1);
  put_u64(bytes.grow(8), 7);
  put_u32(bytes.grow(4), 3);
  put_u16(bytes.grow(2), 1);
  bytes.append("p");
  put_u32(bytes.grow(4), 1);
  put_u64(bytes.grow(8), 0);
  put_u64(bytes.grow(8), 5);
  ProducerTable table = ProducerTable::decode(bytes.view(), format_version, 40).value();
  EXPECT_EQ(table.check({7, 3, 0}, 5, GapPolicy::refuse).kind, Kind::duplicate);
  EXPECT_EQ(table.horizon_ms(), 0);
  EXPECT_TRUE(table.expired(1000, 1'000'000).empty());
  table.begin_segment(500);
  EXPECT_TRUE(table.expired(39, 501).empty());
  EXPECT_EQ(table.expired(40, 501).size(), 1u);
}

// The table against a model that remembers every single message.
TEST(ProducerTable, answers_like_a_model_that_remembers_every_message) {
  EXPECT_TRUE(rc::check([] {
    const auto gaps = *rc::gen::element(GapPolicy::refuse, GapPolicy::accept);
    ProducerTable table;
    std::map<std::uint64_t, std::map<std::uint64_t, std::int64_t>> model;
    std::map<std::uint64_t, std::uint32_t> epochs;
    std::int64_t offset = 0;
    for (int step = 0; step < 60; ++step) {
      const auto producer = *rc::gen::inRange<std::uint64_t>(1, 4);
      if (*rc::gen::inRange(0, 6) == 0) {
        const std::uint32_t epoch = ++epochs[producer];
        RC_ASSERT(table.apply_entry("p" + std::to_string(producer), producer, epoch, offset));
        continue;
      }
      if (*rc::gen::inRange(0, 6) == 0) table = decoded(snapshot_of(table)).value();
      const Stamp stamp{producer, *rc::gen::inRange<std::uint32_t>(1, 4),
                        *rc::gen::inRange<std::uint64_t>(0, 30)};
      const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
      const Check answer = table.check(stamp, count, gaps);
      auto& seen = model[producer];
      if (epochs.count(producer) == 0 || stamp.epoch > epochs[producer]) {
        RC_ASSERT(answer.kind == Kind::unknown);
        continue;
      }
      if (stamp.epoch < epochs[producer]) {
        RC_ASSERT(answer.kind == Kind::fenced);
        continue;
      }
      std::uint32_t duplicates = 0;
      std::uint64_t first_fresh = stamp.sequence + count;
      for (std::uint32_t i = 0; i < count; ++i) {
        if (seen.count(stamp.sequence + i) != 0)
          ++duplicates;
        else
          first_fresh = std::min(first_fresh, stamp.sequence + i);
      }
      std::uint64_t expected = 0;
      while (seen.count(expected) != 0) ++expected;
      if (duplicates == count) {
        RC_ASSERT(answer.kind == Kind::duplicate);
        const auto told = offset_of(table, producer, stamp.sequence);
        RC_ASSERT(!told || *told == seen[stamp.sequence]);
        continue;
      }
      if (gaps == GapPolicy::refuse && first_fresh > expected) {
        RC_ASSERT(answer.kind == Kind::gap);
        continue;
      }
      RC_ASSERT(answer.kind == (duplicates == 0 ? Kind::fresh : Kind::mixed));
      RC_ASSERT(answer.duplicates == duplicates);
      const auto parts = duplicates == 0
                             ? std::vector<Interval>{{stamp.sequence, stamp.sequence + count}}
                             : answer.fresh;
      for (const Interval& part : parts) {
        const auto length = static_cast<std::uint32_t>(part.end - part.begin);
        RC_ASSERT(table.apply({producer, stamp.epoch, part.begin}, length, offset));
        for (std::uint64_t s = part.begin; s < part.end; ++s) {
          RC_ASSERT(seen.count(s) == 0u);
          seen[s] = offset++;
        }
      }
      for (std::uint32_t i = 0; i < count; ++i) RC_ASSERT(seen.count(stamp.sequence + i) == 1u);
    }
  }));
}

}  // namespace
}  // namespace once::log
