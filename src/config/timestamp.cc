// SPDX-License-Identifier: Apache-2.0
#include "config/timestamp.h"

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

  // .25 is 250.
  int fraction_ms() {
    if (!text_.starts_with('.')) return 0;
    text_.remove_prefix(1);
    int ms = digit() * 100;
    for (int unit = 10; next_is_digit(); unit /= 10) ms += digit() * unit;
    return ms;
  }

  // Z, +01:00, -05:30
  int offset_minutes() {
    if (text_.starts_with('Z') || text_.starts_with('z')) {
      text_.remove_prefix(1);
      return 0;
    }
    const int sign = text_.starts_with('-') ? -1 : 1;
    expect("+-");
    const int hours = digits(2);
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

}  // namespace

std::optional<std::int64_t> parse_timestamp_ms(std::string_view text) {
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
  const int ms_count = scanner.fraction_ms();
  const int offset = scanner.offset_minutes();
  const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                            day(static_cast<unsigned>(day_number))};
  // A leap second counts as the second after it.
  if (!scanner.at_good_end() || !date.ok() || hour_count > 23 || minute_count > 59 ||
      second_count > 60)
    return std::nullopt;
  const auto moment = sys_days(date).time_since_epoch() + hours(hour_count) +
                      minutes(minute_count - offset) + seconds(second_count);
  return duration_cast<milliseconds>(moment).count() + ms_count;
}

}  // namespace once
