// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <once/transaction.h>

#include <charconv>
#include <string>
#include <string_view>

namespace once {

// A position as it is kept: "25 3" is offset 25 under fence 3.
inline std::string position_text(const Position& position) {
  return fmt::format("{} {}", position.offset, position.fence);
}

inline Position position_in(std::string_view text) {
  Position position;
  const char* const end = text.data() + text.size();
  const auto offset = std::from_chars(text.data(), end, position.offset);
  if (offset.ptr != end) std::from_chars(offset.ptr + 1, end, position.fence);
  return position;
}

}  // namespace once
