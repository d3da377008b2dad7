// SPDX-License-Identifier: Apache-2.0
#include "cli/checks.h"

#include <limits>
#include <sstream>

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

std::vector<std::string> words_of(CLI::Option& option) {
  std::vector<std::string> words;
  try {
    const std::string& name = option.get_validator(0)->get_name();
    if (!name.starts_with(words_mark)) return words;
    std::istringstream rest(name.substr(words_mark.size()));
    for (std::string word; rest >> word;) words.push_back(word);
  } catch (const CLI::OptionNotFound&) {
    // It accepts anything.
  }
  return words;
}

}  // namespace once::cli
