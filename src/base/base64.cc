// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"

#include <cstdint>

namespace once {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : alphabet[group >> (18 - 6 * j) & 63];
  }
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::size_t padding = 0;
  if (text.ends_with("=="))
    padding = 2;
  else if (text.ends_with('='))
    padding = 1;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const bool pad = last && j + padding >= 4;
      const std::size_t digit = pad ? 0 : alphabet.find(text[i + j]);
      if (digit == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    const std::size_t count = last ? 3 - padding : 3;
    // Bits that say nothing must be zero, or two texts would be the same bytes.
    if (count < 3 && (group & ((1u << (8 * (3 - count))) - 1)) != 0) return std::nullopt;
    for (std::size_t j = 0; j < count; ++j)
      bytes += static_cast<char>(group >> (16 - 8 * j) & 0xff);
  }
  return bytes;
}

}  // namespace once
