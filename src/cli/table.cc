// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace once::cli {
namespace {

// Or a word that stands for one.
bool is_number(std::string_view text) {
  if (text.empty()) return false;
  if (text == "yes" || text == "no") return true;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == ',' || c == '.' || c == '-' || c == '%';
  });
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

}  // namespace

void Table::row(std::vector<std::string> cells) {
  cells.resize(names_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(bool color,
                        const std::function<std::string(std::string_view)>& shown) const {
  std::vector<std::vector<std::string>> rows = rows_;
  for (auto& cells : rows)
    for (std::string& cell : cells) cell = shown(cell);
  std::vector<std::size_t> widths(names_.size());
  std::vector<bool> numeric(names_.size());
  for (std::size_t column = 0; column < names_.size(); ++column) {
    widths[column] = width_of(names_[column]);
    bool any = false;
    bool all = true;
    for (const auto& cells : rows) {
      widths[column] = std::max(widths[column], width_of(cells[column]));
      any = any || is_number(cells[column]);
      all = all && (cells[column].empty() || is_number(cells[column]));
    }
    numeric[column] = any && all;
  }

  std::string text;
  const auto line = [&](const std::vector<std::string>& cells, bool bold) {
    std::string whole;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) whole += "  ";
      whole += padded(cells[column], widths[column], numeric[column]);
    }
    whole.erase(whole.find_last_not_of(' ') + 1);
    text += bold ? "\033[1m" + whole + "\033[0m\n" : whole + "\n";
  };
  if (std::any_of(names_.begin(), names_.end(), [](const auto& name) { return !name.empty(); }))
    line(names_, color);
  for (const auto& cells : rows) line(cells, false);
  return text;
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a continuation byte
  }));
}

}  // namespace once::cli
