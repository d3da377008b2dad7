// SPDX-License-Identifier: Apache-2.0
#include "audit/sighting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "testing/scratch.h"

namespace once::audit {
namespace {

std::vector<Sighting> some(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<Sighting> made(count);
  for (Sighting& one : made) {
    one.digest[0] = static_cast<std::uint8_t>(random() % 5);  // many are equal
    one.side = static_cast<std::uint32_t>(random() % 2);
    one.offset = static_cast<std::int64_t>(random() % 100);
  }
  return made;
}

TEST(SightingSorter, gives_back_everything_in_order_with_and_without_files) {
  const testing::Scratch scratch;
  std::vector<Sighting> expected = some(1000);
  const std::vector<Sighting> input = expected;
  std::sort(expected.begin(), expected.end());
  for (const std::size_t fit : {1000u, 999u, 500u, 7u}) {
    SightingSorter sorter(scratch.directory(), fit * sizeof(Sighting));
    for (const Sighting& one : input) ASSERT_TRUE(sorter.add(one));
    EXPECT_EQ(sorter.files(), (1000 - 1) / fit);
    std::vector<Sighting> got;
    ASSERT_TRUE(sorter.visit([&](const Sighting& one) { got.push_back(one); }));
    EXPECT_EQ(got, expected) << fit;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.directory()));
}

TEST(SightingSorter, more_files_than_it_may_have_are_an_error) {
  const testing::Scratch scratch;
  SightingSorter sorter(scratch.directory(), 0);
  Status added;
  int count = 0;
  for (; added && count < 2000; ++count) added = sorter.add({});
  ASSERT_FALSE(added);
  EXPECT_EQ(count, 514);  // 512 files, one in memory, one too many
}

TEST(SightingSorter, a_directory_that_is_not_there_is_told) {
  const testing::Scratch scratch;
  SightingSorter sorter(scratch.path("none"), 0);
  ASSERT_TRUE(sorter.add({}));
  const Status second = sorter.add({});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().text.find(scratch.path("none")), std::string::npos);
}

}  // namespace
}  // namespace once::audit
