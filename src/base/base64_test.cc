// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <utility>

namespace once {
namespace {

using namespace std::string_view_literals;

TEST(Base64, agrees_with_the_vectors_of_rfc_4648) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> vectors{
      {{"", ""},
       {"f", "Zg=="},
       {"fo", "Zm8="},
       {"foo", "Zm9v"},
       {"foob", "Zm9vYg=="},
       {"fooba", "Zm9vYmE="},
       {"foobar", "Zm9vYmFy"}}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text).value(), bytes);
  }
}

TEST(Base64, with_a_foreign_character_or_length_is_refused) {
  for (const auto text : {"Zg="sv, "Z"sv, "Zg=a"sv, "Z==="sv, "Zm9v!!!!"sv, "===="sv})
    EXPECT_FALSE(decode_base64(text)) << text;
}

TEST(Base64, bits_that_say_nothing_are_zero) {
  EXPECT_EQ(decode_base64("Zg=="), "f");
  EXPECT_FALSE(decode_base64("Zh=="));
  EXPECT_FALSE(decode_base64("Zm9="));
}

}  // namespace
}  // namespace once
