// SPDX-License-Identifier: Apache-2.0
#include "cli/checks.h"

#include <limits>

#include "cli/moment.h"
#include "cli/table.h"

namespace once::cli {

CLI::Validator whole_number(std::int64_t min, std::int64_t max) {
  return CLI::Validator(
      [min, max](std::string& input) {
        const auto number = number_in(input);
        if (number && *number >= min && *number <= max) return std::string();
        const bool open = max == std::numeric_limits<std::int64_t>::max();
        return fmt::format("must be a whole number {} {}{}, not \"{}\"", open ? "of" : "from",
                           grouped(min), open ? " or more" : " to " + grouped(max), input);
      },
      "");
}

}  // namespace once::cli
