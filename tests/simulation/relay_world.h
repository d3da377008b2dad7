// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

struct RelayWorldOptions {
  std::uint64_t seed = 0;
  std::size_t events_max = 250;
};

struct RelayWorldReport {
  std::vector<std::string> violations;
  std::vector<std::string> trace;
  std::map<std::string, std::uint64_t> reached;
};

// Two stores that emit under the same name to the same topic, each with some relay processes that
// die, freeze and lose answers. Transactions draw their numbers early and commit late; some rows
// can never be sent. Stores go back to a backup, and the topic is made anew; a person restarts a
// destination when a relay says that it has diverged, and never else. In the end all goes well, and
// every message must be there as often as it should be, in order.
RelayWorldReport run_relay_world(const RelayWorldOptions& options);

}  // namespace once::simulation
