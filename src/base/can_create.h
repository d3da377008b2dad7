// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

namespace once {

// Whether a file could be made at this path, with the directories above it that do not exist yet;
// nothing is left behind. The error is that of making it.
[[nodiscard]] Status check_can_create(const std::string& path);

}  // namespace once
