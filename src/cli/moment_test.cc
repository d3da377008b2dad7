// SPDX-License-Identifier: Apache-2.0
#include "cli/moment.h"

#include <gtest/gtest.h>

namespace once::cli {
namespace {

constexpr std::int64_t now_ms = 1'800'000'000'000;

TEST(Moment, is_a_time_with_its_zone_or_a_while_ago) {
  EXPECT_EQ(parse_moment("2026-11-16T01:43:10Z", now_ms), 1794793390000);
  EXPECT_EQ(parse_moment("2026-11-16T01:43:10.25Z", now_ms), 1794793390250);
  EXPECT_EQ(parse_moment("2026-11-16T01:43:10.1234567Z", now_ms), 1794793390123);
  EXPECT_EQ(parse_moment("2026-11-16T02:43:10+01:00", now_ms), 1794793390000);
  EXPECT_EQ(parse_moment("2026-11-15T20:13:10-05:30", now_ms), 1794793390000);
  EXPECT_EQ(parse_moment("-90s", now_ms), now_ms - 90'000);
  EXPECT_EQ(parse_moment("-15m", now_ms), now_ms - 900'000);
  EXPECT_EQ(parse_moment("-1h", now_ms), now_ms - 3'600'000);
  EXPECT_EQ(parse_moment("-2d", now_ms), now_ms - 172'800'000);
}

TEST(Moment, is_nothing_that_could_be_read_in_two_ways) {
  for (const char* text :
       {"", "-", "-h", "1h", "-1w", "-1.5h", "--1h", "-99999999999999999999h", "-9999999d",
        "tomorrow", "2026-11-16", "2026-11-16T01:43:10", "2026-13-16T01:43:10Z",
        "2026-11-16T01:43:10Zx", "2026-11-16T01:43:10Z ", "100"})
    EXPECT_EQ(parse_moment(text, now_ms), std::nullopt) << text;
}

TEST(Moment, numbers_are_whole) {
  EXPECT_EQ(number_in("-7"), -7);
  EXPECT_EQ(number_in("12"), 12);
  for (const char* text : {"", "1x", "x", "1.5", " 1", "99999999999999999999"})
    EXPECT_EQ(number_in(text), std::nullopt) << text;
}

}  // namespace
}  // namespace once::cli
