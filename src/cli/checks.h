// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/flags.h"

namespace once::cli {

// One of these words, and what it stands for.
template <class Enum>
Check one_of(const std::map<std::string, Enum>& known) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : known) words.push_back(word);
  return {[known, words](std::string& input) {
            const auto found = known.find(input);
            if (found == known.end())
              return fmt::format("must be {}, not \"{}\"", fmt::join(words, ", "), input);
            input = std::to_string(static_cast<int>(found->second));
            return std::string();
          },
          words};
}

// A whole number within these limits.
Check whole_number(std::int64_t min, std::int64_t max);

// A part of a whole: from 0 to 1.
Check ratio();

}  // namespace once::cli
