// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

struct DoorsOptions {
  std::uint64_t seed = 0;
  bool verbose = false;
  std::uint32_t steps = 150;
};

struct DoorsReport {
  std::vector<std::string> violations;
  std::map<std::string, std::uint64_t> reached;
};

// A partition as a server uses it, from one seed: Kafka clients send record batches, some of them
// compressed, others send messages; requests are lost, doubled, damaged and late; the process and
// the machine die at every step. Everything is read as record batches and compared id by id: what
// was acknowledged is there, at the offset that was told, once, and in order.
DoorsReport run_doors_world(const DoorsOptions& options);

}  // namespace once::simulation
