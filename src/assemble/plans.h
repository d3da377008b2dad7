// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/plan.h"

namespace once::assemble {

// The variables of this process, and the files that `${file:PATH}` names, without the newline that
// editors put at their end.
[[nodiscard]] Environment system_environment();

// The pipelines of a file.
[[nodiscard]] Result<std::vector<Plan>> plans_in(const std::string& path);

// The one with this name; all of them if it is empty. The error has the tag "usage".
[[nodiscard]] Result<std::vector<Plan>> chosen(std::vector<Plan> plans, const std::string& name);

}  // namespace once::assemble
