// SPDX-License-Identifier: Apache-2.0
#include "cli/moment.h"

#include <charconv>

#include "config/timestamp.h"

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
  const auto us = parse_timestamp_us(text);
  if (!us || text[10] != 'T') return std::nullopt;  // one word of a command line
  return timestamp_ms_of_us(*us);
}

}  // namespace once::cli
