// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "config/plan.h"

namespace once {

// What PipelineOptions::wanted is for a plan: `source.when`, and whether messages with an empty
// body or without one are skipped. The id is not known yet, so a condition on it is an error.
[[nodiscard]] Result<std::function<Result<bool>(const Delivery&)>> make_wanted(const Plan& plan,
                                                                               bool skips_empty);

}  // namespace once
