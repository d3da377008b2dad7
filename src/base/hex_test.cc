// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <gtest/gtest.h>

namespace once {
namespace {

TEST(Hex, every_byte_comes_back_from_its_digits_in_either_case) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    append_hex(text, std::string(1, static_cast<char>(byte)));
    ASSERT_EQ(text.size(), 2u);
    EXPECT_EQ(hex_byte(text[0], text[1]), byte);
    for (char& digit : text)
      if (digit >= 'a') digit = static_cast<char>(digit - 'a' + 'A');
    EXPECT_EQ(hex_byte(text[0], text[1]), byte);
  }
}

TEST(Hex, what_is_no_digit_has_no_value) {
  for (int byte = 0; byte < 256; ++byte) {
    const char digit = static_cast<char>(byte);
    const bool is_one = std::string_view("0123456789abcdefABCDEF").find(digit) != std::string::npos;
    EXPECT_EQ(hex_value(digit) >= 0, is_one) << byte;
    EXPECT_EQ(hex_byte(digit, '0') >= 0, is_one) << byte;
    EXPECT_EQ(hex_byte('0', digit) >= 0, is_one) << byte;
  }
}

}  // namespace
}  // namespace once
