// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "model/decimal.h"

namespace once {

// Appends a value in one canonical spelling: no blanks, members sorted by name. Two members
// with the same name (`doubled_member`) are an error, and so are a number without room in its
// spelling (`huge_exponent`) and more than 64 levels.
[[nodiscard]] simdjson::error_code append_canonical(std::string& out,
                                                    simdjson::ondemand::value value,
                                                    NumberSpelling numbers);

// Whether a text begins like a JSON object or list.
[[nodiscard]] bool may_be_json(std::string_view text);

// The same for a whole text that is a JSON object or list; false for anything else, and then `out`
// is not changed.
[[nodiscard]] bool append_canonical_text(std::string& out, std::string_view text);

}  // namespace once
