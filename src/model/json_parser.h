// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace once {

// The parser needs some readable bytes after the text, so each body is copied to where they are.
// The buffers stay from one document to the next, so whoever parses many keeps one; only the latest
// document may be used.
struct JsonParser {
  simdjson::ondemand::parser parser;
  std::vector<char> text;
  simdjson::ondemand::document document;

  simdjson::error_code parse(std::string_view body) {
    if (text.size() < body.size() + simdjson::SIMDJSON_PADDING)
      text.resize(2 * (body.size() + simdjson::SIMDJSON_PADDING));
    std::memcpy(text.data(), body.data(), body.size());
    std::memset(text.data() + body.size(), ' ', simdjson::SIMDJSON_PADDING);
    return parser.iterate(text.data(), body.size(), text.size()).get(document);
  }
};

// A token as the document has it, without the blanks behind it.
inline std::string_view without_blanks(std::string_view token) {
  const auto end = token.find_last_not_of(" \t\r\n");
  return token.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace once
