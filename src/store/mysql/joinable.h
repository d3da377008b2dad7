// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace once {

// Whether a write may be run for many rows of values at once: nothing in it depends on what the
// session did just before (LAST_INSERT_ID(), a variable) or is looked up once for all of them (a
// subquery). A function that we do not know could do either.
bool is_joinable(std::string_view statement);

}  // namespace once
