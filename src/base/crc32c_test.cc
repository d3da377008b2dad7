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

TEST(Crc32c, portable_and_fast_agree_on_long_inputs) {
  std::string text;
  for (std::size_t i = 0; i < 20'000; ++i) text.push_back(static_cast<char>(i * i >> 7 ^ i * 31));
  for (const std::size_t length : {3071u, 3072u, 3073u, 6143u, 6144u, 9216u, 9999u, 20'000u})
    for (std::size_t from = 0; from < 9; ++from) {
      const std::string_view part = std::string_view(text).substr(from, length - from);
      EXPECT_EQ(crc32c(part, 12345), crc32c_portable(part, 12345)) << length << " from " << from;
    }
}

TEST(Crc32c, continues_an_earlier_result_at_every_split) {
  const std::string text = "every message counts exactly once";
  for (std::size_t split = 0; split <= text.size(); ++split)
    EXPECT_EQ(crc32c(text.substr(split), crc32c(text.substr(0, split))), crc32c(text)) << split;
}

}  // namespace
}  // namespace once
