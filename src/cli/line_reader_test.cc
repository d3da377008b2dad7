// SPDX-License-Identifier: Apache-2.0
#include "cli/line_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "testing/scratch.h"

namespace once::cli {
namespace {

using testing::Scratch;

std::vector<std::string> lines_of(const std::string& content, std::size_t count_max) {
  Scratch scratch;
  EXPECT_TRUE(replace_file(system_files(), scratch.path("f"), content));
  auto reader = LineReader::open(scratch.path("f")).value();
  std::vector<std::string> all;
  while (true) {
    const auto lines = reader.next(count_max).value();
    EXPECT_LE(lines.size(), count_max);
    if (lines.empty()) return all;
    all.insert(all.end(), lines.begin(), lines.end());
  }
}

TEST(LineReader, gives_every_line_with_or_without_a_last_newline) {
  EXPECT_EQ(lines_of("a\nb\n", 10), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb", 10), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines_of("\n\n", 10), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(lines_of("", 10), std::vector<std::string>{});
}

TEST(LineReader, keeps_bytes_as_they_are) {
  const std::string strange("a\0b\r", 4);
  EXPECT_EQ(lines_of(strange + "\n", 10), std::vector<std::string>{strange});
}

TEST(LineReader, joins_lines_that_are_longer_than_a_portion) {
  const std::string longer(600 << 10, 'x');
  EXPECT_EQ(lines_of("a\n" + longer + "\nb", 1), (std::vector<std::string>{"a", longer, "b"}));
}

TEST(LineReader, line_without_an_end_is_refused_at_its_limit) {
  Scratch scratch;
  const std::string endless(LineReader::line_bytes_max + (1 << 20), 'x');
  ASSERT_TRUE(replace_file(system_files(), scratch.path("f"), endless));
  auto reader = LineReader::open(scratch.path("f")).value();
  const auto lines = reader.next(1);
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().tag, "input");
}

TEST(LineReader, missing_file_is_told) {
  EXPECT_EQ(LineReader::open("/nonexistent/file").error().tag, "missing");
}

}  // namespace
}  // namespace once::cli
