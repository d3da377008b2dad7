// SPDX-License-Identifier: Apache-2.0
// Record batches out, as they are on disk.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "log/group_commit.h"
#include "log/log_testing.h"
#include "testing/scratch.h"

namespace once::log {
namespace {

// A partition of some segments, in which producers enter between messages. `ends` has the offset
// behind each batch.
struct Filled : Bench {
  std::unique_ptr<Partition> partition;
  std::vector<std::int64_t> ends;
  static constexpr int count = 60;

  Filled() {
    options.segment_bytes_max = 2048;
    partition = open();
    Stamp stamp = partition->enter("p").value();
    for (int i = 0, size = 1; i < count; i += size, size = size % 5 + 1) {
      size = std::min(size, count - i);
      EXPECT_TRUE(append(*partition, stamp, texts(i, i + size)));
      stamp = after(stamp, static_cast<std::uint64_t>(size));
      ends.push_back(i + size);
      if (i % 4 != 0) continue;
      EXPECT_TRUE(partition->enter(fmt::format("other {}", i)));
    }
  }
  std::int64_t begin_of_batch_with(std::int64_t offset) const {
    std::int64_t begin = 0;
    for (const std::int64_t end : ends)
      if (end <= offset) begin = end;
    return begin;
  }
};

// The bodies of located batches, from memory, and compared with what is in the file.
std::vector<std::string> bodies_of(const StoredBatches& stored) {
  std::vector<std::string> result;
  const LoadedBatches loaded = load(stored).value();
  EXPECT_EQ(loaded.batches.size(), stored.batches.size());
  for (std::size_t i = 0; i < loaded.batches.size(); ++i) {
    const StoredBatch& place = stored.batches[i];
    std::string bytes(place.bytes, '\0');
    EXPECT_EQ(stored.file->read_at(place.position, bytes).value(), bytes.size());
    EXPECT_EQ(bytes, loaded.batches[i]);
    const BatchHeader header = decode_batch_header(bytes).value();
    EXPECT_EQ(header.base_offset, place.base_offset);
    EXPECT_EQ(header.count, place.count);
    Deliveries decoded;
    EXPECT_TRUE(decode_batch(bytes, {}, true, decoded));
    for (const Delivery& delivery : decoded.deliveries) result.emplace_back(delivery.body);
  }
  return result;
}

TEST(Locate, gives_whole_batches_from_every_offset_under_every_limit) {
  const Filled log;
  ASSERT_GT(log.partition->info().segments, 2u);
  for (std::int64_t from = 0; from < Filled::count; ++from)
    for (const std::size_t limit : {0u, 200u, 500u, 1u << 20}) {
      std::vector<std::string> read;
      const std::int64_t begin = log.begin_of_batch_with(from);
      std::int64_t offset = from;
      while (offset < Filled::count) {
        const auto stored = log.partition->locate(offset, limit);
        ASSERT_TRUE(stored) << stored.error().text;
        ASSERT_FALSE(stored->batches.empty());
        EXPECT_EQ(stored->batches.front().base_offset, log.begin_of_batch_with(offset));
        EXPECT_TRUE(stored->bytes <= limit || stored->batches.size() == 1);
        for (std::string& body : bodies_of(*stored)) read.push_back(std::move(body));
        offset = stored->end_offset;
      }
      ASSERT_EQ(read, bodies(static_cast<int>(begin), Filled::count)) << from << " " << limit;
    }
}

TEST(Locate, gives_nothing_at_the_end_and_says_gone_outside) {
  const Filled log;
  EXPECT_TRUE(log.partition->locate(Filled::count, 100)->batches.empty());
  EXPECT_EQ(log.partition->locate(Filled::count, 100)->end_offset, Filled::count);
  EXPECT_EQ(log.partition->locate(Filled::count + 1, 100).error().tag, "gone");
  EXPECT_EQ(log.partition->locate(-1, 100).error().tag, "gone");
  EXPECT_TRUE(load(*log.partition->locate(Filled::count, 100))->batches.empty());
}

TEST(Locate, hands_out_nothing_before_its_sync_has_returned) {
  Bench bench;
  auto partition = bench.open();
  ASSERT_TRUE(append(*partition, {}, texts(0, 2)));
  const auto end = [&] { return partition->locate(0, 1 << 20).value().end_offset; };
  ASSERT_TRUE(partition->stage({}, texts(2, 4)));
  EXPECT_EQ(end(), 2);
  ASSERT_TRUE(partition->take());
  const Status flushed = partition->flush();
  ASSERT_TRUE(flushed);
  EXPECT_EQ(end(), 2);
  partition->land(flushed);
  EXPECT_EQ(end(), 4);
  ASSERT_TRUE(partition->stage({}, texts(4, 6)));
  bench.files.refuse = [](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  EXPECT_FALSE(partition->sync());
  EXPECT_EQ(end(), 4);
}

TEST(Locate, what_was_located_stays_readable_though_retention_deletes_it) {
  Filled log;
  const StoredBatches stored = log.partition->locate(0, 1 << 20).value();
  log.partition.reset();
  log.options.retention_bytes = 0;
  log.partition = log.open();
  ASSERT_GT(log.partition->first_offset(), stored.end_offset - 1);
  EXPECT_EQ(log.partition->locate(0, 100).error().tag, "gone");
  EXPECT_EQ(bodies_of(stored), bodies(0, static_cast<int>(stored.end_offset)));
}

TEST(Locate, damage_is_found_by_one_check_or_the_other) {
  Filled log;
  const StoredBatches stored = log.partition->locate(0, 1 << 20).value();
  const StoredBatch place = stored.batches.at(1);
  std::string& file = log.files.content(log.segment(0));
  for (std::size_t byte = 0; byte < place.bytes; byte += byte < 30 ? 1 : 7) {
    char& at = file[static_cast<std::size_t>(place.position) + byte];
    at = static_cast<char>(at ^ 4);
    const auto located = log.partition->locate(0, 1 << 20);
    // In front of its checksum a batch is covered by that of its frame; behind, by its own.
    EXPECT_EQ(located.has_value(), byte >= batch_crc_from) << byte;
    const auto loaded = located ? load(*located) : fail(located.error());
    EXPECT_FALSE(loaded) << byte;
    EXPECT_EQ(loaded ? "" : loaded.error().tag, "corrupt") << byte;
    at = static_cast<char>(at ^ 4);
  }
  EXPECT_TRUE(load(log.partition->locate(0, 1 << 20).value()));
}

TEST(Locate, a_real_file_can_be_sent_by_its_descriptor) {
  const testing::Scratch scratch;
  TestClock clock;
  auto partition = Partition::open(system_files(), clock, scratch.path("t/0"), {}).value();
  ASSERT_TRUE(append(*partition, {}, texts(0, 3)));
  const StoredBatches stored = partition->locate(0, 1 << 20).value();
  const StoredBatch& place = stored.batches.at(0);
  std::string bytes(place.bytes, '\0');
  ASSERT_EQ(::pread(stored.file->descriptor(), bytes.data(), bytes.size(), place.position),
            static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(bytes, load(stored)->batches.at(0));
}

TEST(Locate, many_readers_follow_the_writers_and_see_each_message_once_in_order) {
  Bench bench;
  bench.options.segment_bytes_max = 8192;
  GroupCommit commit(bench.open());
  constexpr int count = 500;
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r)
    threads.emplace_back([&] {
      std::vector<std::string> read;
      std::int64_t offset = 0;
      while (offset < count) {
        const auto stored = commit.locate(offset, 1000);
        ASSERT_TRUE(stored) << stored.error().text;
        for (std::string& body : bodies_of(*stored)) read.push_back(std::move(body));
        offset = stored->end_offset;
      }
      EXPECT_EQ(read, bodies(0, count));
    });
  const Stamp stamp = commit.enter("p").value();
  for (int i = 0; i < count; ++i)
    ASSERT_TRUE(commit.append(after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace once::log
