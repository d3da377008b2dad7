// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/output.h"
#include "runtime/rehearsal.h"

namespace once::cli {

// What messages would do, which was rolled back.
Json rehearsed_json(const std::vector<Rehearsed>& messages);
// The same as tables.
void write_rehearsed(const std::vector<Rehearsed>& messages, Output& output);

}  // namespace once::cli
