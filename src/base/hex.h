// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace once {

// Two digits for each byte, which mean nothing to any parser.
inline void append_hex(std::string& into, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const char byte : bytes) {
    into += digits[static_cast<unsigned char>(byte) >> 4];
    into += digits[static_cast<unsigned char>(byte) & 15];
  }
}

}  // namespace once
