// SPDX-License-Identifier: Apache-2.0
#include "cli/moment.h"

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string_view>

namespace once::cli {
namespace {

std::int64_t unit_ms(char unit) {
  switch (unit) {
    case 's': return 1'000;
    case 'm': return 60'000;
    case 'h': return 3'600'000;
    case 'd': return 86'400'000;
    default: return 0;
  }
}

std::optional<std::int64_t> before_now(const std::string& text, std::int64_t now_ms) {
  if (text.size() < 3 || text[0] != '-') return std::nullopt;
  const auto count = number_in(text.substr(1, text.size() - 2));
  const std::int64_t unit = unit_ms(text.back());
  if (!count || unit == 0 || *count < 0 || *count > now_ms / unit) return std::nullopt;
  return now_ms - *count * unit;
}

// The digits behind a point, in milliseconds; removes them from the text.
std::int64_t take_fraction_ms(std::string_view& text) {
  if (!text.starts_with('.')) return 0;
  text.remove_prefix(1);
  std::int64_t ms = 0;
  for (std::int64_t unit = 100; !text.empty() && text[0] >= '0' && text[0] <= '9'; unit /= 10) {
    ms += (text[0] - '0') * unit;
    text.remove_prefix(1);
  }
  return ms;
}

}  // namespace

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> parse_moment(const std::string& text, std::int64_t now_ms) {
  if (const auto past = before_now(text, now_ms)) return past;
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  std::string_view tail = rest;
  const std::int64_t fraction_ms = take_fraction_ms(tail);
  std::tm zone{};
  const char* end = ::strptime(tail.data(), "%z", &zone);  // the tail ends where `text` does
  if (tail.empty() || end == nullptr || *end != '\0') return std::nullopt;
  return (::timegm(&parts) - zone.tm_gmtoff) * 1000 + fraction_ms;
}

}  // namespace once::cli
