// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace once {

// How numbers are written in canonical JSON.
enum class NumberSpelling : std::uint8_t {
  binary,  // as a 64-bit integer or double: what ids are made of
  exact,   // all digits count: 1.50 and 15e-1 are the same, 0.1 and 0.10000000000000001 are not
};

// Appends a value in one canonical spelling: no blanks, members sorted by name. Two members
// with the same name (`doubled_member`) are an error, and so is more than 64 levels.
[[nodiscard]] simdjson::error_code append_canonical(std::string& out,
                                                    simdjson::ondemand::value value,
                                                    NumberSpelling numbers);

// Whether a text begins like a JSON object or list.
[[nodiscard]] bool may_be_json(std::string_view text);

// The same for a whole text that is a JSON object or list; false for anything else, and then `out`
// is not changed.
[[nodiscard]] bool append_canonical_text(std::string& out, std::string_view text);

}  // namespace once
