// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/identity.h>

#include <cstdint>
#include <optional>
#include <string>

namespace once::audit {

// How the messages of one topic are in another.
struct BridgeReport {
  std::uint64_t copied = 0;
  std::uint64_t missing = 0;
  std::uint64_t doubled = 0;
  std::uint64_t others = 0;      // only in the second topic; no fault
  std::uint64_t without_id = 0;  // by the rule, in the first topic: these were parked
  std::uint64_t duplicates = 0;  // messages of the first topic whose id came before: not copied

  bool is_clean() const { return missing == 0 && doubled == 0; }
};

// Reads both topics of a bridge to their ends and compares them, id by id: each message of the one
// is in the other, as often as it should be. With a rule that is once for each id, otherwise as
// often as in the first.
[[nodiscard]] Result<BridgeReport> audit_bridge(const std::string& from, const std::string& to,
                                                const std::optional<IdRule>& id);

}  // namespace once::audit
