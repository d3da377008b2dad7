// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace once {

// No key of ours has more than four parts.
constexpr std::uint32_t toml_key_parts_max = 16;

struct TomlSpot {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// Where a key has more parts than that, if one has. Each part is a table inside of another, and the
// parser takes tables apart by recursion: a key of 40,000 parts would overflow its stack. So this
// looks at the text before it is parsed. Up to the first place that is no TOML it sees the same
// keys as the parser, and behind that place the parser makes no tables.
std::optional<TomlSpot> too_deep_key(std::string_view text);

}  // namespace once
