// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

// Several members of one group, each a process of its own, on one store: what is forgotten, and
// when. Clocks jump, members stand still while others go on, all are down for hours, messages are
// retried for longer than ids are remembered, some come from the future, some resend others, and
// the topic is deleted and created again; the store is restored from an older copy, while members
// go on. Offsets have holes: ends of transactions, compaction.
struct HorizonOptions {
  std::uint64_t seed = 0;
  std::uint32_t steps = 400;
  bool verbose = false;
};

struct HorizonReport {
  std::vector<std::string> violations;
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  std::map<std::string, std::uint64_t> reached;
};

HorizonReport run_horizon_world(const HorizonOptions& options);

}  // namespace once::simulation
