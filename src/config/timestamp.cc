// SPDX-License-Identifier: Apache-2.0
#include "config/timestamp.h"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>

namespace once {
namespace {

// Takes a text apart from its beginning; once something was not as expected, nothing is.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  int digits(std::size_t count) {
    int number = 0;
    for (std::size_t i = 0; i < count; ++i) number = number * 10 + digit();
    return number;
  }

  void expect(std::string_view any_of) {
    if (text_.empty() || any_of.find(text_[0]) == std::string_view::npos)
      good_ = false;
    else
      text_.remove_prefix(1);
  }

  // .25 is 250,000.
  int fraction_us() {
    if (!text_.starts_with('.')) return 0;
    text_.remove_prefix(1);
    int us = digit() * 100'000;
    for (int unit = 10'000; next_is_digit(); unit /= 10) us += digit() * unit;
    return us;
  }

  // Z, +01:00, -05:30; stored: also +01, and nothing.
  int offset_minutes(bool is_stored) {
    if (is_stored && text_.empty()) return 0;
    if (text_.starts_with('Z') || text_.starts_with('z')) {
      text_.remove_prefix(1);
      return 0;
    }
    const int sign = text_.starts_with('-') ? -1 : 1;
    expect("+-");
    const int hours = digits(2);
    if (is_stored && text_.empty()) return sign * hours * 60;
    expect(":");
    const int minutes = digits(2);
    good_ = good_ && hours < 24 && minutes < 60;
    return sign * (hours * 60 + minutes);
  }

  bool at_good_end() const { return good_ && text_.empty(); }

 private:
  bool next_is_digit() const { return !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; }
  int digit() {
    if (!next_is_digit()) {
      good_ = false;
      return 0;
    }
    const int found = text_[0] - '0';
    text_.remove_prefix(1);
    return found;
  }

  std::string_view text_;
  bool good_ = true;
};

std::optional<std::int64_t> parse(std::string_view text, bool is_stored) {
  using namespace std::chrono;
  Scanner scanner(text);
  const int year_number = scanner.digits(4);
  scanner.expect("-");
  const int month_number = scanner.digits(2);
  scanner.expect("-");
  const int day_number = scanner.digits(2);
  scanner.expect("Tt ");
  const int hour_count = scanner.digits(2);
  scanner.expect(":");
  const int minute_count = scanner.digits(2);
  scanner.expect(":");
  const int second_count = scanner.digits(2);
  const int us_count = scanner.fraction_us();
  const int offset = scanner.offset_minutes(is_stored);
  const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                            day(static_cast<unsigned>(day_number))};
  // A leap second counts as the second after it.
  if (!scanner.at_good_end() || !date.ok() || hour_count > 23 || minute_count > 59 ||
      second_count > 60)
    return std::nullopt;
  const auto moment = sys_days(date).time_since_epoch() + hours(hour_count) +
                      minutes(minute_count - offset) + seconds(second_count);
  const std::int64_t us = duration_cast<microseconds>(moment).count() + us_count;
  if (us < timestamp_us_min || us > timestamp_us_max) return std::nullopt;
  return us;
}

}  // namespace

std::optional<std::int64_t> parse_timestamp_us(std::string_view text) { return parse(text, false); }

std::optional<std::int64_t> parse_stored_timestamp_us(std::string_view text) {
  return parse(text, true);
}

std::optional<std::int64_t> timestamp_us_of_ms(std::int64_t ms) {
  if (ms < timestamp_us_min / 1000 || ms > timestamp_us_max / 1000) return std::nullopt;
  return ms * 1000;
}

std::int64_t timestamp_ms_of_us(std::int64_t us) { return us / 1000 - (us % 1000 < 0 ? 1 : 0); }

std::string timestamp_text(std::int64_t us) {
  using namespace std::chrono;
  const sys_time<microseconds> moment{microseconds(us)};
  const auto day_begin = floor<days>(moment);
  const year_month_day date(day_begin);
  const hh_mm_ss time(moment - day_begin);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     time.hours().count(), time.minutes().count(), time.seconds().count(),
                     time.subseconds().count());
}

}  // namespace once
