// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>
#include <string_view>

#include "model/canonical_json.h"

namespace once {

// Whether this is a JSON pointer (RFC 6901) below the root.
bool is_json_pointer(std::string_view pointer);

// Reads fields of one body, all of which must be JSON. Uses the parser of its thread: the latest
// one parsed is the only one that may be used.
// Errors have the remedy `park` and the tag "no_id", and say what is wrong with which pointer. A
// member that stands twice in an object on the way of a pointer is such an error, and so is one in
// a canonical form.
class JsonFields {
 public:
  [[nodiscard]] static Result<JsonFields> parse(std::string_view body);

  // A string, number or boolean as text: 100, 100.0 and "100" are the same, and all digits count.
  // Empty strings, null, lists and objects identify nothing and are errors, and so are numbers with
  // an exponent that is too large.
  [[nodiscard]] Result<std::string> scalar(std::string_view pointer) const;

  // Any value in one canonical spelling: members sorted, no blanks, numbers as by `scalar` unless
  // something else is asked for.
  [[nodiscard]] Result<std::string> canonical(std::string_view pointer,
                                              NumberSpelling numbers = NumberSpelling::plain) const;

 private:
  JsonFields() = default;
};

}  // namespace once
