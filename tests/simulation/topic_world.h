// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace once::simulation {

// A topic of some partitions whose producer enters again and again, while the process and the
// machine die at every step: the name has one id everywhere, no epoch is given twice, and what each
// partition acknowledged is there once and in order.
std::vector<std::string> run_topic_world(std::uint64_t seed);

}  // namespace once::simulation
