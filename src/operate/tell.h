// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <functional>
#include <string>

namespace once::operate {

// Takes a sentence that a person should know while something runs: why it waits, who does the work
// instead, what was parked. Called from any thread.
using Tell = std::function<void(std::string)>;

// Takes an error for which a person has to act while everything else goes on. Called from any
// thread.
using TellError = std::function<void(const Error&)>;

}  // namespace once::operate
