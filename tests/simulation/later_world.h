// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

// Messages that are put off until later, by several processes on one store: the owner of the
// partition delivers, and whoever has the role handles what is due. Processes die at any failpoint,
// rivals handle what is due in the middle of a handler, commits fail and get lost, the clock jumps
// ahead, persons hasten messages.
struct LaterOptions {
  std::uint64_t seed = 0;
  std::uint32_t steps = 300;
  bool verbose = false;
};

struct LaterReport {
  std::vector<std::string> violations;
  std::uint64_t trace_hash = 0;
  std::map<std::string, std::uint64_t> reached;
};

LaterReport run_later_world(const LaterOptions& options);

}  // namespace once::simulation
