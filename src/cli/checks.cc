// SPDX-License-Identifier: Apache-2.0
#include "cli/checks.h"

#include <charconv>
#include <limits>

#include "cli/moment.h"
#include "cli/table.h"

namespace once::cli {

Check whole_number(std::int64_t min, std::int64_t max) {
  return {[min, max](std::string& input) {
    const auto number = number_in(input);
    if (number && *number >= min && *number <= max) return std::string();
    const bool open = max == std::numeric_limits<std::int64_t>::max();
    return fmt::format("must be a whole number {} {}{}, not \"{}\"", open ? "of" : "from",
                       grouped(min), open ? " or more" : " to " + grouped(max), input);
  }};
}

Check ratio() {
  return {[](std::string& input) {
    double number = -1;
    const char* const end = input.data() + input.size();
    const auto read = std::from_chars(input.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end && number >= 0 && number <= 1)
      return std::string();
    return fmt::format("must be a number from 0 to 1, not \"{}\"", input);
  }};
}

}  // namespace once::cli
