// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace once {
namespace {

TEST(Crc32c, knows_the_check_value_of_the_standard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c_portable("123456789"), 0xe3069283u);
}

TEST(Crc32c, portable_and_fast_agree_at_every_length) {
  std::string text;
  for (int length = 0; length < 300; ++length) {
    EXPECT_EQ(crc32c(text), crc32c_portable(text)) << length;
    text.push_back(static_cast<char>(length * 31 + 7));
  }
}

TEST(Crc32c, continues_an_earlier_result_at_every_split) {
  const std::string text = "every message counts exactly once";
  for (std::size_t split = 0; split <= text.size(); ++split)
    EXPECT_EQ(crc32c(text.substr(split), crc32c(text.substr(0, split))), crc32c(text)) << split;
}

}  // namespace
}  // namespace once
