// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace once::cli {
namespace {

using namespace std::string_literals;

std::string utf8(char32_t point) {
  std::string made;
  const auto add = [&](char32_t bits) { made.push_back(static_cast<char>(bits)); };
  if (point < 0x80) {
    add(point);
  } else if (point < 0x800) {
    add(0xc0 | point >> 6);
    add(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    add(0xe0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3f));
    add(0x80 | (point & 0x3f));
  } else {
    add(0xf0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3f));
    add(0x80 | (point >> 6 & 0x3f));
    add(0x80 | (point & 0x3f));
  }
  return made;
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7f && point <= 0x9f); }

bool turns_or_hides(char32_t point) {
  return point == 0x061c || (point >= 0x200b && point <= 0x200f) ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
         point == 0xfeff;
}

TEST(Terminal, text_that_steers_nothing_stays_as_it_is) {
  for (const std::string& text :
       {""s, "order 1"s, "grün"s, "日本語"s, "שלום"s, "\U0001f600"s, "\\x1b is text"s})
    EXPECT_EQ(printable(text), text);
}

TEST(Terminal, controls_of_both_sets_are_shown_and_not_obeyed) {
  EXPECT_EQ(printable("a\033[31mb\n\x7f"), "a\\x1b[31mb\\x0a\\x7f");
  EXPECT_EQ(printable("a\u009b31m"), "a\\u{9b}31m") << "CSI of C1, as UTF-8";
  EXPECT_EQ(printable("a\x9b"s + "31m"), "a\\x9b31m") << "and as a single byte";
  EXPECT_EQ(printable("a\0b"s), "a\\x00b");
}

TEST(Terminal, overrides_of_direction_and_hidden_characters_are_shown) {
  EXPECT_EQ(printable("\u202egpj.exe"), "\\u{202e}gpj.exe");
  EXPECT_EQ(printable("a\u2066b\u2069"), "a\\u{2066}b\\u{2069}");
  EXPECT_EQ(printable("pay\u200bpal"), "pay\\u{200b}pal");
  EXPECT_EQ(printable("\U000e0041"), "\\u{e0041}") << "a tag";
}

TEST(Terminal, bytes_that_are_not_utf8_are_shown_one_by_one) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "too long a spelling of an escape";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

TEST(Terminal, no_character_of_unicode_steers_and_json_says_the_same_without_it) {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const std::string raw = utf8(point);
    const bool kept = printable(raw) == raw;
    const bool steers = is_control(point) || turns_or_hides(point);
    ASSERT_FALSE(steers && kept) << static_cast<std::uint32_t>(point);
    const std::string dumped = nlohmann::json(raw).dump();
    const std::string safe = printable_json(dumped);
    ASSERT_EQ(nlohmann::json::parse(safe).get<std::string>(), raw);
    ASSERT_EQ(safe == dumped, kept || point < 0x20) << static_cast<std::uint32_t>(point);
  }
}

}  // namespace
}  // namespace once::cli
