// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstring>
#include <functional>
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

// An object with two members of one name means one thing to one reader and another to the next, so
// Once refuses it wherever it looks into one: a name on the way of a pointer, or any name in what
// is put into a canonical form. simdjson has no code for it.
constexpr simdjson::error_code doubled_member = simdjson::NUM_ERROR_CODES;

// What an error code says, also for `doubled_member`.
const char* json_error_text(simdjson::error_code error);

// Calls `use` with the value at a JSON pointer (RFC 6901) that is not empty, and goes on to the end
// of the objects on the way to see that no other has its name. NO_SUCH_FIELD if there is nothing.
// The value is only valid inside of `use`, and what came of it must not be believed after an error.
using UseJsonValue = std::function<simdjson::error_code(simdjson::ondemand::value&)>;
simdjson::error_code use_value_at(simdjson::ondemand::document& document, std::string_view pointer,
                                  const UseJsonValue& use);

// A token as the document has it, without the blanks behind it.
inline std::string_view without_blanks(std::string_view token) {
  const auto end = token.find_last_not_of(" \t\r\n");
  return token.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

}  // namespace once
