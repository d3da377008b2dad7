// SPDX-License-Identifier: Apache-2.0
// Record batches in, as Kafka clients send them.
#include "log/raw_batch.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "log/limits.h"
#include "log/log_testing.h"
#include "log/verify.h"

namespace once::log {
namespace {

std::string batch_of(const Stamp& stamp, const std::vector<Message>& messages) {
  Buffer buffer;
  encode_batch(buffer, 0, stamp, 1'700'000'000'000, messages);
  return std::string(buffer.view());
}

std::string with_checksum(std::string batch) {
  put_u32(batch.data() + 17, crc32c(std::string_view(batch).substr(batch_crc_from)));
  return batch;
}

// The same, with `change` made to its bytes and the checksum made right again.
std::string changed(std::string batch, const std::function<void(char*)>& change) {
  change(batch.data());
  return with_checksum(std::move(batch));
}

std::string compressed(const Stamp& stamp, std::uint32_t count) {
  std::string batch = batch_of(stamp, texts(0, static_cast<int>(count)));
  batch.resize(batch_header_bytes);
  batch += "what lz4 has made of it";
  put_u32(batch.data() + 8, static_cast<std::uint32_t>(batch.size() - 12));
  return changed(batch, [](char* at) { put_u16(at + 21, 3); });
}

std::string tag_of(const std::string& batch) {
  const auto checked = check_raw_batch(batch);
  return checked ? "" : checked.error().tag;
}

Result<Receipt> append_raw(Partition& partition, const std::string& bytes) {
  const RawBatch batch = ONCE_TRY(check_raw_batch(bytes));
  const Ticket ticket = ONCE_TRY(partition.stage(batch));
  ONCE_TRY(partition.sync());
  return partition.outcome(ticket);
}

TEST(RawBatch, of_a_client_is_taken_and_everything_else_refused) {
  const std::string good = batch_of({7, 1, 5}, texts(0, 3));
  ASSERT_EQ(tag_of(good), "");
  EXPECT_EQ(tag_of(compressed({7, 1, 5}, 3)), "");
  EXPECT_EQ(tag_of(batch_of({}, texts(0, 1))), "");
  EXPECT_EQ(tag_of(""), "invalid");
  EXPECT_EQ(tag_of(good.substr(0, batch_header_bytes - 1)), "invalid");
  EXPECT_EQ(tag_of(with_checksum(good + '\0')), "invalid");
  EXPECT_EQ(tag_of(with_checksum(good.substr(0, good.size() - 1))), "invalid");
  const auto with = [&](std::size_t at, std::uint16_t value) {
    return tag_of(changed(good, [&](char* bytes) { put_u16(bytes + at, value); }));
  };
  EXPECT_EQ(with(0, 1), "invalid");        // an offset
  EXPECT_EQ(with(16, 0x0100), "invalid");  // version 1; the checksum is behind it
  for (const int attributes : {0x05, 0x07, 0x08, 0x10, 0x20, 0x40, 0x8000})
    EXPECT_EQ(with(21, static_cast<std::uint16_t>(attributes)), "unsupported") << attributes;
  EXPECT_EQ(with(25, 3), "invalid");       // the last delta
  EXPECT_EQ(with(59, 4), "invalid");       // the count
  EXPECT_EQ(with(27, 0x7fff), "invalid");  // a time far out
  EXPECT_EQ(with(43, 0x8000), "invalid");  // producer, epoch and sequence below -1
  EXPECT_EQ(with(51, 0xffff), "invalid");
  EXPECT_EQ(with(53, 0x8000), "invalid");
  EXPECT_EQ(tag_of(changed(good, [](char* at) { put_i64(at + 43, 0); })), "invalid");
  EXPECT_EQ(tag_of(changed(good, [](char* at) { put_i64(at + 43, -1); })), "invalid");
  for (const std::size_t byte : {61u, 63u, 64u})  // of the first record: length, time, delta
    EXPECT_EQ(tag_of(changed(good, [&](char* at) { at[byte] = static_cast<char>(at[byte] + 2); })),
              byte == 63 ? "" : "invalid")
        << byte;
}

TEST(RawBatch, every_flipped_bit_behind_what_the_log_replaces_is_found) {
  for (const std::string& good : {batch_of({7, 1, 5}, texts(0, 2)), compressed({7, 1, 5}, 2)})
    for (std::size_t bit = 16 * 8; bit < good.size() * 8; ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_NE(tag_of(bad), "") << bit;
    }
}

TEST(RawBatch, limits_hold_on_both_sides) {
  const auto counted = [](std::uint32_t count) {
    return changed(compressed({7, 1, 0}, 1), [&](char* at) {
      put_u32(at + 23, count - 1);
      put_u32(at + 57, count);
    });
  };
  EXPECT_EQ(tag_of(counted(batch_count_max)), "");
  EXPECT_EQ(tag_of(counted(batch_count_max + 1)), "invalid");
  std::vector<Message> large(1);
  large[0].body->assign(message_bytes_max, 'x');
  EXPECT_EQ(tag_of(batch_of({}, large)), "invalid");
  large[0].body->resize(message_bytes_max - 100);
  EXPECT_EQ(tag_of(batch_of({}, large)), "");
  large.resize(3, large[0]);
  EXPECT_EQ(tag_of(batch_of({}, large)), "too_large");
}

TEST(RawBatch, is_stored_as_it_came_but_for_its_place) {
  Bench bench;
  auto partition = bench.open();
  ASSERT_TRUE(append(*partition, {}, texts(0, 2)));
  const std::string plain = batch_of({}, texts(2, 5));
  const std::string packed = compressed({}, 4);
  EXPECT_EQ(append_raw(*partition, plain).value(), (Receipt{2, 0}));
  EXPECT_EQ(append_raw(*partition, packed).value(), (Receipt{5, 0}));
  ASSERT_TRUE(append(*partition, {}, texts(9, 11)));
  for (int round = 0; round < 2; ++round) {
    const LoadedBatches loaded = load(partition->locate(2, 1 << 20).value()).value();
    ASSERT_EQ(loaded.batches.size(), 3u);
    for (const auto& [sent, index, offset] :
         {std::tuple(plain, 0u, 2), std::tuple(packed, 1u, 5)}) {
      const std::string_view stored = loaded.batches[index];
      EXPECT_EQ(stored.substr(16), std::string_view(sent).substr(16));
      EXPECT_EQ(decode_batch_header(stored)->base_offset, offset);
      EXPECT_EQ(get_u32(stored.data() + 12), 0u);  // leader epoch
    }
    EXPECT_EQ(partition->read(0, 1)->deliveries.size(), 5u);  // those before the packed one
    partition = bench.open();
  }
  EXPECT_EQ(verify_partition(bench.files, bench.directory)->messages, 11u);
}

TEST(RawBatch, the_messages_of_a_compressed_one_are_not_damaged_but_cannot_be_opened) {
  Bench bench;
  auto partition = bench.open();
  ASSERT_TRUE(append_raw(*partition, compressed({}, 4)));
  const auto read = partition->read(0, 1 << 20);
  EXPECT_EQ(read.error().tag, "compressed");
  EXPECT_NE(read.error().text.find("lz4"), std::string::npos);
  // A program that does not know such frames says so instead of calling them damaged.
  EXPECT_EQ(decode_frame_header(bench.files.content(bench.segment(0)).substr(108)).header.version,
            compressed_version);
}

TEST(RawBatch, a_largest_time_that_is_wrong_is_corrected_like_kafka_does) {
  Bench bench;
  auto partition = bench.open();
  std::vector<Message> messages = texts(0, 2);
  messages[0].timestamp_ms = 5000;
  messages[1].timestamp_ms = 7000;
  const std::string wrong =
      changed(batch_of({}, messages), [](char* at) { put_i64(at + 35, 9'000'000); });
  ASSERT_TRUE(append_raw(*partition, wrong));
  const LoadedBatches loaded = load(partition->locate(0, 1).value()).value();
  EXPECT_EQ(decode_batch_header(loaded.batches[0])->time_max_ms, 7000);
  EXPECT_EQ(partition->offset_at(6000).value(), 1);
  EXPECT_EQ(partition->offset_at(8000).value(), 2);
}

TEST(RawBatch, a_duplicate_of_any_age_is_answered_with_the_offset_of_its_original) {
  Bench bench;
  bench.options.segment_bytes_max = 4096;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  std::vector<std::int64_t> offsets;
  for (int i = 0; i < 300; ++i) {
    // Others in between, so that what is remembered cannot be one range.
    ASSERT_TRUE(append(*partition, {}, texts(i, i + 1)));
    const std::string batch =
        batch_of(after(stamp, static_cast<std::uint64_t>(i) * 2), texts(0, 2));
    offsets.push_back(append_raw(*partition, batch).value().offset);
  }
  for (int round = 0; round < 2; ++round, partition = bench.open())
    for (const int i : {0, 1, 150, 250, 299}) {
      const std::string batch =
          batch_of(after(stamp, static_cast<std::uint64_t>(i) * 2), texts(0, 2));
      EXPECT_EQ(append_raw(*partition, batch).value(),
                (Receipt{offsets[static_cast<std::size_t>(i)], 2}));
    }
  EXPECT_EQ(partition->end_offset(), 900);
}

TEST(RawBatch, of_which_only_some_messages_are_new_is_divided_or_refused) {
  Bench bench;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  ASSERT_TRUE(append_raw(*partition, batch_of(stamp, texts(0, 3))));
  EXPECT_EQ(append_raw(*partition, batch_of(after(stamp, 1), texts(1, 5))).value(),
            (Receipt{1, 2}));
  EXPECT_EQ(read_all(*partition), bodies(0, 5));
  const auto refused = append_raw(*partition, compressed(after(stamp, 4), 4));
  EXPECT_EQ(refused.error().tag, "mixed");
  EXPECT_EQ(refused.error().remedy, Remedy::park);
  EXPECT_EQ(partition->end_offset(), 5);
}

TEST(RawBatch, gaps_fences_and_strangers_are_refused_as_for_messages) {
  Bench bench;
  auto partition = bench.open();
  const Stamp first = partition->enter("p").value();
  EXPECT_EQ(append_raw(*partition, batch_of({99, 1, 0}, texts(0, 1))).error().tag, "unknown");
  EXPECT_EQ(append_raw(*partition, batch_of(after(first, 1), texts(0, 1))).error().tag, "gap");
  ASSERT_TRUE(partition->enter("p"));
  EXPECT_EQ(append_raw(*partition, batch_of(first, texts(0, 1))).error().tag, "fenced");
}

TEST(RawBatch, held_ones_and_held_messages_are_appended_in_order) {
  Bench bench;
  bench.options.gaps = GapPolicy::hold;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  EXPECT_EQ(append_raw(*partition, batch_of(after(stamp, 2), texts(2, 4))).error().tag, "pending");
  EXPECT_EQ(append(*partition, after(stamp, 4), texts(4, 5)).error().tag, "pending");
  EXPECT_EQ(append_raw(*partition, compressed(after(stamp, 5), 2)).error().tag, "pending");
  EXPECT_EQ(append_raw(*partition, batch_of(stamp, texts(0, 2))).value(), (Receipt{0, 0}));
  EXPECT_EQ(partition->end_offset(), 7);
  EXPECT_EQ(partition->next_sequence("p"), 7u);
}

// Kafka's producers count from 0 in each epoch and wrap at 31 bits; our sequences go on.
TEST(RawBatch, sequences_of_a_new_epoch_begin_behind_the_old_one_also_after_a_restart) {
  Bench bench;
  bench.options.segment_bytes_max = 1024;
  auto partition = bench.open();
  std::int64_t offset = 0;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    const Stamp entered = partition->enter("p").value();
    EXPECT_EQ(entered.sequence, static_cast<std::uint64_t>(offset));
    for (std::uint64_t i = 0; i < 10; ++i) {
      const Stamp stamp{entered.producer, entered.epoch, i};
      const std::string batch = batch_of(stamp, texts(0, 1));
      EXPECT_EQ(append_raw(*partition, batch).value(), (Receipt{offset, 0}));
      if (i % 3 == 0) partition = bench.open();
      EXPECT_EQ(append_raw(*partition, batch).value(), (Receipt{offset, 1}));
      ++offset;
    }
  }
  EXPECT_GT(partition->info().segments, 3u);
  EXPECT_TRUE(verify_partition(bench.files, bench.directory));
}

TEST(RawBatch, the_low_bits_of_a_stamp_stand_for_the_nearest_one) {
  ProducerTable table;
  ASSERT_TRUE(table.apply_entry("p", 7, 1, 0));
  constexpr std::uint64_t wrap = std::uint64_t{1} << 31;
  EXPECT_EQ(table.widened(7, 1, wrap - 1), (Stamp{7, 1, wrap - 1}));
  ASSERT_TRUE(table.apply({7, 1, 0}, wrap - 2, 0));
  EXPECT_EQ(table.widened(7, 1, wrap - 2), (Stamp{7, 1, wrap - 2}));
  EXPECT_EQ(table.widened(7, 1, 1), (Stamp{7, 1, wrap + 1}));
  ASSERT_TRUE(table.apply({7, 1, wrap - 2}, 10, 0));
  EXPECT_EQ(table.widened(7, 1, wrap - 1), (Stamp{7, 1, wrap - 1}));
  EXPECT_EQ(table.widened(7, 1, 8), (Stamp{7, 1, wrap + 8}));
  ASSERT_TRUE(table.apply_entry("p", 7, 0x8001, 0));
  EXPECT_EQ(table.widened(7, 1, 0), (Stamp{7, 0x8001, wrap + 8}));
  EXPECT_EQ(table.widened(7, 0x7fff, 0).epoch, 0x7fffu);
  EXPECT_EQ(table.widened(7, 2, 0).epoch, 0x8002u);
  EXPECT_EQ(table.widened(8, 1, 3), (Stamp{8, 1, 3}));  // not known
}

}  // namespace
}  // namespace once::log
