// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace once {

// A reason with everything that differs from message to message masked, so that failures of one
// kind have one text: `#` stands for a number or an id made of digits, `"…"` for what was in
// quotes.
[[nodiscard]] std::string masked(std::string_view reason);

}  // namespace once
