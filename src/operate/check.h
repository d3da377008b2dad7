// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operate/job.h"

namespace once::operate {

// Finds what would stop a job after its start: a destination that cannot be reached or has no such
// topic, and a position that the topic of the source no longer has. Looks only.
[[nodiscard]] Status check_job(const Job& job, const std::string& source_url);

}  // namespace once::operate
