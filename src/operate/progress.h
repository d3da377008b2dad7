// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"

namespace once::operate {

// How far a scope has come: the positions of its partitions, and the horizon that follows from
// them.
struct ScopeProgress {
  std::string scope;
  ScopeRecord record;
};
// Of the scope that was asked for, or of all of users.
[[nodiscard]] Result<std::vector<ScopeProgress>> progress_of(Books& books);

// Refuses what is more likely a slip than meant: an offset far ahead of the position, a horizon in
// the future, seconds instead of milliseconds.
[[nodiscard]] Status check_plausible(const ScopeRecord& scope, const Correction& correction);

struct PositionChange {
  std::string scope;
  PartitionRecord was;
  std::int64_t offset = -1;  // the next one to handle; -1: the first of the topic
};
// Sets where a partition goes on; its owner is fenced. Forced, even if it is not plausible.
[[nodiscard]] Result<PositionChange> set_position(Books& books, const std::string& partition,
                                                  std::int64_t offset, const std::string& reason,
                                                  bool forced = false);

struct HorizonChange {
  std::string scope;
  std::int64_t was_ms = 0;  // 0: none
  std::int64_t horizon_ms = 0;
};
// Forced, even if it is not plausible.
[[nodiscard]] Result<HorizonChange> set_horizon(Books& books, std::int64_t horizon_ms,
                                                const std::string& reason, bool forced = false);

Json horizon_json(const ScopeProgress& progress);  // with the partitions that hold it
Json position_json(const std::string& scope, const PartitionRecord& record);
Json json_of(const PositionChange& change);
Json json_of(const HorizonChange& change);

}  // namespace once::operate
