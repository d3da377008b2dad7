// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/identity.h>

#include <optional>
#include <string>

#include "cli/output.h"

namespace once::cli {

// Reads both topics of a bridge to their ends and compares them, id by id: each message of the one
// is in the other, as often as it should be. With a rule that is once for each id, otherwise as
// often as in the first. What only the second has is counted, but is no fault. Answers the exit
// code.
[[nodiscard]] Result<int> audit_bridge(const std::string& from, const std::string& to,
                                       const std::optional<IdRule>& id, Output& output);

}  // namespace once::cli
