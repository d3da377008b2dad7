// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

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

  // All of the text must be one JSON value, also what nobody looks at: half of a body may say
  // something else than the whole.
  simdjson::error_code parse(std::string_view body);

  // Only finds the tokens. For a text that was parsed before as part of another, or of which every
  // value is read.
  simdjson::error_code find_tokens(std::string_view body);
};

// An object with two members of one name means one thing to one reader and another to the next, so
// Once refuses it wherever it looks into one: a name on the way of a pointer, or any name in what
// is put into a canonical form. simdjson has no code for it.
constexpr simdjson::error_code doubled_member = simdjson::NUM_ERROR_CODES;
// A number has no spelling in a canonical form: see `append_decimal`.
constexpr simdjson::error_code huge_exponent = simdjson::NUMBER_OUT_OF_RANGE;

// What an error code says, also for those of Once.
const char* json_error_text(simdjson::error_code error);

// Calls `use` with the value at a JSON pointer (RFC 6901) that is not empty, and goes on to the end
// of the objects on the way to see that no other has its name. NO_SUCH_FIELD if there is nothing.
// The value is only valid inside of `use`, and what came of it must not be believed after an error.
using UseJsonValue = std::function<simdjson::error_code(simdjson::ondemand::value&)>;
simdjson::error_code use_value_at(simdjson::ondemand::document& document, std::string_view pointer,
                                  const UseJsonValue& use);

// An error if anything follows the object or list that was read.
simdjson::error_code check_end(simdjson::ondemand::document& document);

inline bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// A token as the document has it, without the blanks around it.
inline std::string_view without_blanks(std::string_view token) {
  while (!token.empty() && is_json_blank(token.front())) token.remove_prefix(1);
  while (!token.empty() && is_json_blank(token.back())) token.remove_suffix(1);
  return token;
}

}  // namespace once
