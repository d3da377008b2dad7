// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace once::simulation {

// What the other side of an effect can do, and so what can be promised.
enum class Side : std::uint8_t {
  tells_duplicates,  // keyed
  can_be_asked,      // queryable, and refuses stale fences
  asked_unfenced,    // queryable, but a paused owner's request is still taken: cannot be promised
  at_least_once,
  at_most_once,
};

struct ClaimsWorldOptions {
  std::uint64_t seed = 0;
  Side side = Side::tells_duplicates;
  std::size_t events_max = 120;
};

struct ClaimsWorldReport {
  std::vector<std::string> violations;
  std::vector<std::string> trace;
  std::map<std::string, std::uint64_t> reached;
};

// Some programs that want the same few effects outside the store: they pause, die, lose answers and
// come back, the store refuses and loses answers, time passes. In the end all goes well, and every
// effect must have happened as often as promised.
ClaimsWorldReport run_claims_world(const ClaimsWorldOptions& options);

}  // namespace once::simulation
