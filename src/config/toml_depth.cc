// SPDX-License-Identifier: Apache-2.0
#include "config/toml_depth.h"

#include <algorithm>
#include <cstddef>

namespace once {
namespace {

// Behind a string that begins here: "a", 'a', and with three quotes over several lines.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool has_escapes = quote == '"';
  const std::string_view three = has_escapes ? R"(""")" : "'''";
  const bool is_long = text.substr(at).starts_with(three);
  for (std::size_t i = at + (is_long ? 3 : 1); i < text.size(); ++i) {
    if (has_escapes && text[i] == '\\') {
      ++i;
    } else if (is_long && text.substr(i).starts_with(three)) {
      // Up to two quotes more may stand before the three that end it.
      const std::string_view quotes = text.substr(i, 5);
      return i + std::min(quotes.find_first_not_of(quote), quotes.size());
    } else if (!is_long && (text[i] == quote || text[i] == '\n')) {
      return text[i] == quote ? i + 1 : i;
    }
  }
  return text.size();
}

}  // namespace

std::optional<TomlSpot> too_deep_key(std::string_view text) {
  std::uint32_t dots = 0;  // since the last sign that no key goes over
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '.' && ++dots >= toml_key_parts_max) {
      const std::string_view before = text.substr(0, at);
      const auto newline = before.rfind('\n') + 1;  // npos + 1 is 0
      return TomlSpot{
          static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<std::uint32_t>(at - newline) + 1};
    }
    if (c == '=' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}' || c == '\n') dots = 0;
    ++at;
  }
  return std::nullopt;
}

}  // namespace once
