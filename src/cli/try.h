// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/output.h"
#include "runtime/rehearsal.h"

namespace once::cli {

// Shows what messages would do, which was rolled back.
void write_rehearsed(const std::vector<Rehearsed>& messages, Output& output);

}  // namespace once::cli
