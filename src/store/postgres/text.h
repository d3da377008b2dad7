// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

// Milliseconds by the server's clock, as a piece of a statement.
#define ONCE_PG_NOW_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

namespace once {

// For arrays; none of these is NULL.
inline std::vector<std::string_view> views_of(std::span<const std::string> strings) {
  std::vector<std::string_view> views;
  views.reserve(strings.size());
  for (const std::string& string : strings)
    views.emplace_back(string.data() == nullptr ? "" : string.data(), string.size());
  return views;
}

}  // namespace once
