// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

// Faults of the world itself that its checkers must see.
enum class Canary : std::uint8_t { none, lost_acknowledgement, double_effect };

struct WorldOptions {
  std::uint64_t seed = 0;
  Canary canary = Canary::none;
  bool verbose = false;
  std::uint32_t steps = 300;
};

struct WorldReport {
  std::vector<std::string> violations;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::map<std::string, std::uint64_t> reached;
};

// One world from one seed: producers, the log, consumers, the relay and a second log, with
// everything that can go wrong; then calm, in which all work must come to its end; then the books.
WorldReport run_world(const WorldOptions& options);

}  // namespace once::simulation
