// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

// Where the partitions of topics begin and end, by the names under which stores know them.
struct TopicExtent {
  std::int64_t first_offset = 0;
  std::int64_t end_offset = 0;
  std::string topic_url = {};  // of its topic alone
};
using TopicExtents = std::map<std::string, TopicExtent, std::less<>>;
// Looks only: no group of the URL is joined.
[[nodiscard]] Result<TopicExtents> topic_extents(const std::string& source_url);

struct Lag {
  std::int64_t messages =
      0;                    // that wait behind the position, at most; not the ends of transactions
  bool beyond_end = false;  // the topic does not have the position: what comes next is not handled
};
// By partition; none for one that the topic does not have.
using Lags = std::map<std::string, Lag, std::less<>>;
[[nodiscard]] Result<Lags> lags_of(const ScopeRecord& scope, const TopicExtents& extents);

// Where a partition is to go on.
struct PositionTarget {
  enum class Kind : std::uint8_t { first, offset, end, time };
  Kind kind = Kind::first;
  std::int64_t value = 0;  // an offset, or milliseconds since 1970
};

struct PositionRequest {
  std::string partition;
  PositionTarget to;
  std::string source_url = {};  // the topic; needed for its end and for a time
  std::string reason;
  bool forced = false;  // even if it is not plausible
};
struct PositionChange {
  std::string scope;
  PartitionRecord was;
  std::int64_t offset = -1;  // the next one to handle; -1: the first of the topic
  bool checked = true;       // whether the topic has it; unchecked is an offset without a source
};
// Sets where a partition goes on; its owner is fenced. With a source, an offset that the topic does
// not have is refused.
[[nodiscard]] Result<PositionChange> set_position(Books& books, const PositionRequest& request);

struct HorizonChange {
  std::string scope;
  std::int64_t was_ms = 0;  // 0: none
  std::int64_t horizon_ms = 0;
  bool held = true;
};
// It stays there until it is released. Forced, even if it is not plausible.
[[nodiscard]] Result<HorizonChange> set_horizon(Books& books, std::int64_t horizon_ms,
                                                const std::string& reason, bool forced = false);
[[nodiscard]] Result<HorizonChange> release_horizon(Books& books, const std::string& reason);

Json horizon_json(const ScopeProgress& progress);  // with the partitions that hold it
// `lag`: unset if it is not known.
Json position_json(const std::string& scope, const PartitionRecord& record,
                   const std::optional<Lag>& lag);
Json json_of(const PositionChange& change);
Json json_of(const HorizonChange& change);

}  // namespace once::operate
