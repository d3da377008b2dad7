// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace once::cli {

// Rows of text in aligned columns: numbers to the right, the rest to the left, no borders, so that
// `cut`, `awk` and people can read it.
class Table {
 public:
  explicit Table(std::vector<std::string> names) : names_(std::move(names)) {}

  // Missing cells at the end are empty.
  void row(std::vector<std::string> cells);

  // Each cell as `shown` shows it.
  std::string text(bool color, const std::function<std::string(std::string_view)>& shown) const;

 private:
  std::vector<std::string> names_;  // all empty: no line for them
  std::vector<std::vector<std::string>> rows_;
};

// 1234567 as "1,234,567".
std::string grouped(std::int64_t number);

// How many columns a terminal needs for UTF-8 text, if every character takes one.
std::size_t width_of(std::string_view text);

}  // namespace once::cli
