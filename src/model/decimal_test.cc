// SPDX-License-Identifier: Apache-2.0
#include "model/decimal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace once {
namespace {

std::string plain(std::string_view text) {
  std::string out;
  EXPECT_TRUE(is_decimal(text)) << text;
  EXPECT_TRUE(append_decimal(out, text, NumberSpelling::plain)) << text;
  return out;
}

std::string scientific(std::string_view text) {
  std::string out;
  EXPECT_TRUE(append_decimal(out, text, NumberSpelling::scientific)) << text;
  return out;
}

TEST(Decimal, equal_numbers_have_one_plain_form) {
  const std::vector<std::vector<std::string>> equal{
      {"0", "-0", "0.0", "-0.000", "0e5", "0e-7", "0.0E+3"},
      {"1", "1.0", "1e0", "10e-1", "0.1e1", "1.000000000000000000", "1000E-3"},
      {"-12", "-12.0", "-1.2e1", "-1200e-2"},
      {"1.5", "1.50", "15e-1", "0.15e+1"},
      {"0.0001", "1e-4", "0.00010"},
      {"1e-05", "0.00001", "10e-6"},
      {"-1.25e-07", "-0.000000125", "-125e-9"},
      {"100000000000000000000000", "1e23", "100000000000000000000000.0", "0.1e24"},
      {"18446744073709551615", "1.8446744073709551615e19"},
      {"9007199254740993", "9007199254740993.0"},
      {"1763329595.123456789", "1763329595123456789e-9"},
      {"123456789012345678.5", "1234567890123456785e-1"},
  };
  for (const auto& forms : equal)
    for (const std::string& text : forms) {
      EXPECT_EQ(plain(text), forms[0]) << text;
      EXPECT_EQ(scientific(text), scientific(forms[0])) << text;
    }
}

TEST(Decimal, scientific_form_is_the_one_that_fingerprints_are_made_of) {
  EXPECT_EQ(scientific("-0.0"), "0");
  EXPECT_EQ(scientific("1.50"), "15e-1");
  EXPECT_EQ(scientific("100"), "1e2");
  EXPECT_EQ(scientific("-12"), "-12");
  EXPECT_EQ(scientific("1e999999999999999"), "1e999999999999999");
}

TEST(Decimal, huge_exponents_have_no_form) {
  std::string out = "x";
  for (const char* text : {"1e1001", "1e-1001", "1e999999999", "-1e-999999999",
                           "1e99999999999999999999", "1e-99999999999999999999"})
    EXPECT_FALSE(append_decimal(out, text, NumberSpelling::plain)) << text;
  EXPECT_FALSE(append_decimal(out, "1e1000000000000000", NumberSpelling::scientific));
  EXPECT_EQ(out, "x");
  EXPECT_EQ(plain("1e1000"), "1" + std::string(1000, '0'));
  EXPECT_EQ(plain("1e-1000"), "1e-1000");
  EXPECT_EQ(plain("0e999999999"), "0");
  const std::string written = "1" + std::string(5000, '0');
  EXPECT_EQ(plain(written), written) << "it takes no more room than it has";
}

TEST(Decimal, integers_stay_as_they_are) {
  EXPECT_TRUE(rc::check([](std::int64_t number) {
    const std::string text = fmt::format("{}", number);
    RC_ASSERT(plain(text) == text);
    RC_ASSERT(plain(text + ".0") == text);
  }));
}

// The ids in ledgers of earlier versions were written by way of a double.
TEST(Decimal, shortest_text_of_a_double_below_1e16_stays_as_it_is) {
  EXPECT_TRUE(rc::check([](std::int64_t mantissa) {
    const int scale = *rc::gen::inRange(-1070, 1);
    const double number = std::ldexp(static_cast<double>(mantissa), scale);
    RC_PRE(std::fabs(number) < 1e16 && number != 0);
    const std::string text = fmt::format("{}", number);
    RC_ASSERT(plain(text) == text);
  }));
}

// A number as its digits and a power of ten, in one of its many texts.
std::string any_text(std::int64_t digits, int exponent) {
  const int zeros = *rc::gen::inRange(0, 4);
  std::string text =
      fmt::format("{}", std::abs(digits)) + std::string(static_cast<std::size_t>(zeros), '0');
  exponent -= zeros;
  const int fraction = *rc::gen::inRange(0, 30);
  if (fraction > 0) {
    const auto needed = static_cast<std::size_t>(fraction) + 1;
    if (text.size() < needed) text.insert(0, needed - text.size(), '0');
    text.insert(text.size() - static_cast<std::size_t>(fraction), ".");
    exponent += fraction;
  }
  if (digits < 0) text.insert(0, "-");
  if (exponent != 0 || *rc::gen::arbitrary<bool>())
    text += fmt::format("{}{}{}", *rc::gen::element('e', 'E'),
                        exponent >= 0 && *rc::gen::arbitrary<bool>() ? "+" : "", exponent);
  return text;
}

TEST(Decimal, numbers_are_equal_if_and_only_if_their_forms_are) {
  EXPECT_TRUE(rc::check([] {
    const auto digits = rc::gen::inRange<std::int64_t>(-1000, 1001);
    const auto exponent = rc::gen::inRange(-40, 41);
    const std::int64_t a = *digits;
    const int a_exponent = *exponent;
    const bool near = *rc::gen::arbitrary<bool>();
    const int shift = near ? *rc::gen::inRange(0, 3) : 0;
    // Often the same number with its zeros elsewhere, or one that differs in the last digit.
    std::int64_t b = near ? a : *digits;
    for (int i = 0; i < shift; ++i) b *= 10;
    if (near) b += *rc::gen::inRange(0, 2);
    const int b_exponent = near ? a_exponent - shift : *exponent;
    const std::string one = any_text(a, a_exponent);
    const std::string other = any_text(b, b_exponent);
    // By integers alone: both at the smaller of the two powers of ten.
    const auto value = [&](std::int64_t number, int power) {
      std::string text = fmt::format("{}", number);
      if (number != 0) text.append(static_cast<std::size_t>(power + 50), '0');
      return text;
    };
    const bool equal = value(a, a_exponent) == value(b, b_exponent);
    RC_ASSERT((plain(one) == plain(other)) == equal);
    RC_ASSERT((scientific(one) == scientific(other)) == equal);
    RC_ASSERT((compare_decimals(one, other) == 0) == equal);
    RC_ASSERT(plain(plain(one)) == plain(one));
  }));
}

TEST(Decimal, order_is_that_of_the_numbers) {
  const std::vector<std::vector<std::string>> ascending{{"-1e99999999999999999999"},
                                                        {"-10", "-1e1", "-10.0"},
                                                        {"-2"},
                                                        {"-0.5"},
                                                        {"-1e-30"},
                                                        {"0", "-0", "0.00", "0e5"},
                                                        {"1e-400"},
                                                        {"0.1", "1e-1"},
                                                        {"0.10000000000000000000001"},
                                                        {"1", "1.0", "10e-1"},
                                                        {"9"},
                                                        {"10"},
                                                        {"99.99"},
                                                        {"1e+2", "100"},
                                                        {"123456789012345678901"},
                                                        {"1e99999999999999999999"}};
  for (std::size_t i = 0; i < ascending.size(); ++i)
    for (std::size_t j = 0; j < ascending.size(); ++j)
      for (const std::string& a : ascending[i])
        for (const std::string& b : ascending[j])
          EXPECT_EQ(compare_decimals(a, b), i <=> j) << a << " and " << b;
}

}  // namespace
}  // namespace once
