// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace once::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Unicode's control and format characters, and the blanks that take no room; sorted.
constexpr std::array unsafe = std::to_array<Range>({
    {0x0000, 0x001f},    // C0
    {0x007f, 0x009f},    // DEL and C1
    {0x00ad, 0x00ad},    // soft hyphen
    {0x034f, 0x034f},    // combining grapheme joiner
    {0x0600, 0x0605},    // Arabic signs that reach over digits
    {0x061c, 0x061c},    // Arabic letter mark
    {0x06dd, 0x06dd},    // Arabic end of ayah
    {0x070f, 0x070f},    // Syriac abbreviation mark
    {0x115f, 0x1160},    // Hangul fillers
    {0x17b4, 0x17b5},    // Khmer inherent vowels
    {0x180b, 0x180f},    // Mongolian selectors and vowel separator
    {0x200b, 0x200f},    // zero-width space, joiners, direction marks
    {0x2028, 0x202e},    // separators, embeddings and overrides
    {0x2060, 0x206f},    // word joiner, isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xfeff, 0xfeff},    // byte order mark
    {0xffa0, 0xffa0},    // halfwidth Hangul filler
    {0xfff0, 0xfffb},    // annotations
    {0x110bd, 0x110cd},  // Kaithi number signs
    {0x13430, 0x1343f},  // Egyptian format controls
    {0x1bca0, 0x1bca3},  // shorthand format controls
    {0x1d173, 0x1d17a},  // musical format controls
    {0xe0000, 0xe0fff},  // tags
});

bool is_unsafe(char32_t point) {
  const auto* const range =
      std::lower_bound(unsafe.begin(), unsafe.end(), point,
                       [](const Range& one, char32_t value) { return one.last < value; });
  return range != unsafe.end() && range->first <= point;
}

struct Decoded {
  char32_t point = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// The first character; the text is not empty.
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr std::array<char32_t, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  char32_t point = first & (0x7f >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    point = point << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < smallest[bytes] || point > 0x10ffff || surrogate) return {};
  return {point, bytes};
}

// Whether all is plain ASCII: the usual case, without looking at single characters.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

void append_json_escape(std::string& out, char32_t point) {
  if (point < 0x10000) {
    out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point));
    return;
  }
  const std::uint32_t rest = static_cast<std::uint32_t>(point) - 0x10000;
  out += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
}

}  // namespace

std::string printable(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string shown;
  while (!text.empty()) {
    const auto [point, bytes] = decode(text);
    if (bytes == 0 || (bytes == 1 && is_unsafe(point)))
      shown += fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[0]));
    else if (is_unsafe(point))
      shown += fmt::format("\\u{{{:x}}}", static_cast<std::uint32_t>(point));
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

std::string printable_json(std::string json) {
  if (is_plain(json)) return json;
  std::string shown;
  for (std::string_view rest = json; !rest.empty();) {
    const auto [point, bytes] = decode(rest);
    if (bytes != 0 && is_unsafe(point))
      append_json_escape(shown, point);
    else
      shown += rest.substr(0, std::max<std::size_t>(bytes, 1));
    rest.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

}  // namespace once::cli
