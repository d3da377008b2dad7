// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

namespace once::operate {

// Errors of a request itself. Their tag decides about the exit code of a command.
[[nodiscard]] tl::unexpected<Error> fail_usage(std::string text);      // asked in a wrong way
[[nodiscard]] tl::unexpected<Error> fail_input(std::string text);      // a line of the input
[[nodiscard]] tl::unexpected<Error> fail_not_known(std::string text);  // asked, and there is none

}  // namespace once::operate
