// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

// Consumers of a queue: processes with several lanes on one store. The queue delivers in any order;
// messages come again after a lease, a release and the loss of a session; tags are counted anew by
// each session. Processes die at any failpoint, stand still and go on, connections are cut, commits
// fail and get lost, ids are sent twice.
struct QueueWorldOptions {
  std::uint64_t seed = 0;
  std::uint32_t steps = 400;
  bool verbose = false;
};

struct QueueWorldReport {
  std::vector<std::string> violations;
  std::uint64_t trace_hash = 0;
  std::map<std::string, std::uint64_t> reached;
};

QueueWorldReport run_queue_world(const QueueWorldOptions& options);

}  // namespace once::simulation
