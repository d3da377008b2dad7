// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace once::cli {

// What a flag accepts, with errors in our own words.

// How the name of a check begins that accepts words, which follow.
inline constexpr std::string_view words_mark = "one of ";

// One of these words, and what it stands for. `words_of` finds them again.
template <class T>
CLI::Validator one_of(const std::map<std::string, T>& known) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : known) words.push_back(word);
  const CLI::Validator translate = CLI::CheckedTransformer(known);
  CLI::Validator check(
      [translate, words](std::string& input) {
        const std::string given = input;
        if (translate(input).empty()) return std::string();
        return fmt::format("must be {}, not \"{}\"", fmt::join(words, ", "), given);
      },
      "");
  check.name(fmt::format("{}{}", words_mark, fmt::join(words, " ")));
  return check;
}

// The words of an option that accepts one of some words; otherwise none.
std::vector<std::string> words_of(CLI::Option& option);

// A whole number within these limits.
CLI::Validator whole_number(std::int64_t min, std::int64_t max);

}  // namespace once::cli
