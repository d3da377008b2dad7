// SPDX-License-Identifier: Apache-2.0
#include "log/verdict.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "log/group_commit.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

using Runs = std::vector<Run>;

Result<Verdict> append_each(GroupCommit& commit, const Stamp& stamp, int begin, int end) {
  const auto messages = texts(begin, end);
  return commit.append(
      Append{.stamp = after(stamp, static_cast<std::uint64_t>(begin)), .messages = messages});
}

TEST(Verdict, of_a_mixed_append_has_each_message_with_its_own_or_its_originals_offset) {
  Bench bench;
  bench.options.gaps = GapPolicy::accept;
  GroupCommit commit(bench.open());
  const Stamp stamp = commit.enter("p").value();
  EXPECT_EQ(append_each(commit, stamp, 2, 4)->runs, (Runs{{0, 2, false, 0}}));
  EXPECT_EQ(append_each(commit, stamp, 6, 7)->runs, (Runs{{0, 1, false, 2}}));
  const Verdict mixed = append_each(commit, stamp, 0, 9).value();
  EXPECT_EQ(
      mixed.runs,
      (Runs{
          {0, 2, false, 3}, {2, 2, true, 0}, {4, 2, false, 5}, {6, 1, true, 2}, {7, 2, false, 7}}));
  EXPECT_EQ(mixed.receipt(), (Receipt{3, 3}));
  const Verdict again = append_each(commit, stamp, 0, 9).value();
  EXPECT_EQ(
      again.runs,
      (Runs{{0, 2, true, 3}, {2, 2, true, 0}, {4, 2, true, 5}, {6, 1, true, 2}, {7, 2, true, 7}}));
  EXPECT_EQ(again.receipt(), (Receipt{3, 9}));
  EXPECT_EQ(append_each(commit, stamp, 5, 5)->receipt(), (Receipt{9, 0}));
}

// Of 200 appends with others in between, a resend of all at once is answered one by one.
TEST(Verdict, of_old_duplicates_is_found_in_one_pass_also_after_a_restart) {
  Bench bench;
  bench.options.segment_bytes_max = 4096;
  constexpr int count = 200;
  Stamp stamp;
  Runs expected;
  {
    GroupCommit commit(bench.open());
    stamp = commit.enter("p").value();
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(append_each(commit, stamp, i, i + 1));
      ASSERT_TRUE(commit.append({}, texts(0, 1)));
      expected.push_back({static_cast<std::uint32_t>(i), 1, true, 2 * i});
    }
    EXPECT_EQ(append_each(commit, stamp, 0, count)->runs, expected);
  }
  GroupCommit commit(bench.open());
  EXPECT_EQ(append_each(commit, stamp, 0, count)->runs, expected);
  EXPECT_EQ(commit.info().end_offset, 2 * count);
}

TEST(Verdict, what_retention_has_deleted_is_a_duplicate_without_a_place) {
  Bench bench;
  bench.options.segment_bytes_max = 4096;
  Stamp stamp;
  {
    GroupCommit commit(bench.open());
    stamp = commit.enter("p").value();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(append_each(commit, stamp, i, i + 1));
      ASSERT_TRUE(commit.append({}, texts(0, 1)));
    }
  }
  bench.options.retention_bytes = 5000;
  GroupCommit commit(bench.open());
  const std::int64_t first = commit.info().first_offset;
  ASSERT_GT(first, 0);
  const auto runs = append_each(commit, stamp, 0, 200)->runs;
  ASSERT_GT(runs.size(), 1u);
  EXPECT_EQ(runs[0].offset, -1);
  EXPECT_EQ(runs[0].count, static_cast<std::uint32_t>((first + 1) / 2));
  for (std::size_t i = 1; i < runs.size(); ++i)
    EXPECT_EQ(Runs{runs[i]}, (Runs{{runs[i].begin, 1, true, 2 * std::int64_t{runs[i].begin}}}));
}

// The table and the log contradict each other: never answered as if it were deleted.
TEST(Verdict, an_original_that_is_missing_without_retention_is_damage) {
  Bench bench;
  auto partition = bench.open();
  const Verdict lost{{7, 1, 0}, {{0, 3, true, -1}}};
  EXPECT_EQ(partition->confirm(lost).error().tag, "corrupt");
  EXPECT_TRUE(partition->confirm({{7, 1, 0}, {{0, 3, true, 5}}}));
}

// The lookup reads a file that does not answer until an append has come through beside it.
TEST(Verdict, looking_up_an_old_duplicate_does_not_hold_up_appends) {
  Bench bench;
  bench.options.segment_bytes_max = 4096;
  std::atomic<bool> is_slow = false;
  std::atomic<bool> is_reading = false;
  std::atomic<bool> has_appended = false;
  GroupCommit commit(bench.open());
  const Stamp stamp = commit.enter("p").value();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(append_each(commit, stamp, i, i + 1));
    ASSERT_TRUE(commit.append({}, texts(0, 1)));
  }
  bench.files.before_open = [&](const std::string& path) {
    if (!is_slow || !path.ends_with(".log")) return;
    is_reading = true;
    while (!has_appended) std::this_thread::yield();
  };
  is_slow = true;
  std::thread resender([&] {
    EXPECT_EQ(append_each(commit, stamp, 3, 4)->receipt(), (Receipt{6, 1}));
  });
  while (!is_reading) std::this_thread::yield();
  EXPECT_TRUE(commit.append(after(stamp, 200), texts(200, 201)));
  has_appended = true;
  resender.join();
}

}  // namespace
}  // namespace once::log
