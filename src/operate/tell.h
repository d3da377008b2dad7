// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace once::operate {

// Takes a sentence that a person should know while something runs: why it waits, who does the work
// instead, what was parked. Called from any thread.
using Tell = std::function<void(std::string)>;

}  // namespace once::operate
