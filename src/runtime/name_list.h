// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace once {

// For an event: the first names, and how many more there are.
inline std::string name_list(const std::vector<std::string>& names) {
  constexpr std::size_t told_max = 8;
  const std::size_t told = std::min(names.size(), told_max);
  std::string list = fmt::format("{}", fmt::join(std::span(names).first(told), ", "));
  if (told < names.size()) list += fmt::format(" and {} more", names.size() - told);
  return list;
}

}  // namespace once
