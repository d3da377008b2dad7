// SPDX-License-Identifier: Apache-2.0
#include "model/decimal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

namespace once {
namespace {

// 0.<digits> times ten to the power of `exponent`; zero has no digits.
struct Normal {
  bool is_negative = false;
  std::int64_t exponent = 0;
  std::string digits;
};

std::int64_t exponent_in(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), exponent);
  // Nobody means so many digits; half of the range leaves room for the position of the point.
  constexpr std::int64_t limit = std::numeric_limits<std::int64_t>::max() / 2;
  if (read.ec == std::errc::result_out_of_range || exponent > limit || exponent < -limit)
    return text.starts_with('-') ? -limit : limit;
  return exponent;
}

Normal normal(std::string_view text) {
  Normal made;
  made.is_negative = text.starts_with('-');
  if (made.is_negative) text.remove_prefix(1);
  if (const std::size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    made.exponent = exponent_in(text.substr(e + 1));
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  made.digits = text.substr(0, point);
  made.exponent += static_cast<std::int64_t>(made.digits.size());
  if (point != std::string_view::npos) made.digits += text.substr(point + 1);
  const std::size_t first = made.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  made.exponent -= static_cast<std::int64_t>(first);
  made.digits = made.digits.substr(first, made.digits.find_last_not_of('0') + 1 - first);
  return made;
}

// The power of ten by which the digits, read as an integer, are multiplied.
std::int64_t scale_of(const Normal& number) {
  return number.exponent - static_cast<std::int64_t>(number.digits.size());
}

void append_scientific(std::string& out, const Normal& number) {
  out += number.digits;
  if (const std::int64_t scale = scale_of(number); scale != 0)
    fmt::format_to(std::back_inserter(out), "e{}", scale);
}

// As the shortest text of a double is written, so that ids which were made from doubles stay; but
// integers have no exponent, however they are written, since most have none.
void append_plain(std::string& out, const Normal& number) {
  constexpr std::int64_t zeros_max = 3;  // behind the point
  const std::string& digits = number.digits;
  const auto count = static_cast<std::int64_t>(digits.size());
  if (number.exponent < -zeros_max) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    fmt::format_to(std::back_inserter(out), "e-{:02}", 1 - number.exponent);
  } else if (number.exponent <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-number.exponent), '0').append(digits);
  } else if (number.exponent < count) {
    const auto whole = static_cast<std::size_t>(number.exponent);
    out.append(digits, 0, whole).append(".").append(digits, whole);
  } else {
    out.append(digits).append(static_cast<std::size_t>(number.exponent - count), '0');
  }
}

}  // namespace

bool is_decimal(std::string_view text) {
  const auto digits = [&] {
    std::size_t count = 0;
    while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
    return count;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[0] == '0')) return false;
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t fraction = digits();
    if (fraction == 0) return false;
    text.remove_prefix(fraction);
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::size_t exponent = digits();
    if (exponent == 0) return false;
    text.remove_prefix(exponent);
  }
  return text.empty();
}

std::strong_ordering compare_decimals(std::string_view a, std::string_view b) {
  const Normal left = normal(a);
  const Normal right = normal(b);
  const auto sign = [](const Normal& number) {
    if (number.digits.empty()) return 0;
    return number.is_negative ? -1 : 1;
  };
  if (sign(left) != sign(right)) return sign(left) <=> sign(right);
  auto order = left.exponent <=> right.exponent;
  if (order == 0) order = left.digits <=> right.digits;
  return left.is_negative ? 0 <=> order : order;
}

bool append_decimal(std::string& out, std::string_view text, NumberSpelling spelling) {
  constexpr std::int64_t scientific_exponent_max = 999'999'999'999'999;
  const Normal number = normal(text);
  const bool plain = spelling == NumberSpelling::plain;
  const std::int64_t limit =
      plain ? std::max(plain_exponent_max, static_cast<std::int64_t>(text.size()))
            : scientific_exponent_max;
  if (const std::int64_t scale = scale_of(number); scale > limit || scale < -limit) return false;
  if (number.digits.empty()) {  // zero, whatever its sign
    out.push_back('0');
    return true;
  }
  if (number.is_negative) out.push_back('-');
  plain ? append_plain(out, number) : append_scientific(out, number);
  return true;
}

}  // namespace once
