// SPDX-License-Identifier: Apache-2.0
#include "log/verify.h"

#include <gtest/gtest.h>

#include <string>

#include "log/limits.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

void fill(Bench& bench, bool close) {
  bench.options.segment_bytes_max = segment_bytes_least;
  auto partition = bench.open();
  const Stamp stamp = partition->enter("p").value();
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(append(*partition, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
  if (close) {
    ASSERT_TRUE(partition->close());
  }
}

TEST(Verify, a_sound_log_is_counted_closed_or_not) {
  for (const bool close : {true, false}) {
    Bench bench;
    fill(bench, close);
    const auto verified = verify_partition(bench.files, bench.directory);
    ASSERT_TRUE(verified) << verified.error().text;
    EXPECT_EQ(verified->messages, 20u);
    EXPECT_EQ(verified->end_offset, 20);
    EXPECT_GT(verified->segments, 2u);
    EXPECT_EQ(verified->frames, verified->messages + verified->segments + 1);
  }
}

TEST(Verify, damage_in_any_segment_is_found_and_nothing_is_changed) {
  Bench bench;
  fill(bench, true);
  const auto contents = bench.files.contents();
  for (const auto& [path, good] : contents) {
    if (!path.ends_with(".log")) continue;
    for (std::size_t at = 0; at < good.size(); at += 7) {
      auto damaged = contents;
      damaged[path][at] = static_cast<char>(damaged[path][at] ^ 16);
      bench.files.set_contents(damaged);
      const auto verified = verify_partition(bench.files, bench.directory);
      ASSERT_FALSE(verified) << path << " " << at;
      EXPECT_EQ(verified.error().tag, "corrupt");
      EXPECT_EQ(bench.files.contents(), damaged);
    }
  }
}

TEST(Verify, what_retention_left_is_sound) {
  Bench bench;
  bench.options.retention_bytes = 2000;
  fill(bench, true);
  const auto verified = verify_partition(bench.files, bench.directory);
  ASSERT_TRUE(verified) << verified.error().text;
  EXPECT_GT(verified->first_offset, 0);
  EXPECT_EQ(verified->messages, static_cast<std::uint64_t>(20 - verified->first_offset));
}

}  // namespace
}  // namespace once::log
