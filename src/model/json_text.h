// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace once {

// A string of JSON with its quotes. The text is UTF-8.
inline void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') out.push_back('\\');
    if (static_cast<unsigned char>(byte) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned int>(byte));
    else
      out.push_back(byte);
  }
  out.push_back('"');
}

}  // namespace once
