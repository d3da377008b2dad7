// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "operate/job.h"

namespace once::operate {

// What a job needs before it begins: destinations that are there, or that are missing while
// messages wait for them and it has other work, and that it does not read from; and no messages in
// the outbox for a destination that it no longer has. Looks only.
[[nodiscard]] Status check_start(const Job& job);

// What does not stop a job.
struct Findings {
  std::vector<std::string> warnings = {};   // what needs a person although it runs
  std::vector<std::string> unchecked = {};  // what could not be looked at
};

// Finds what would stop a job at its start or right after it, or what it would wait for: what
// `check_start` finds, a destination that is not there, a position
// that the topic of the source does not have, and a topic that is not the one that was read before.
// Looks only, and joins no group.
[[nodiscard]] Result<Findings> check_job(const Job& job);

}  // namespace once::operate
