// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace once::operate {

// Takes a sentence that a person should know while something is looked for.
using Tell = std::function<void(std::string)>;

}  // namespace once::operate
