// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace once::operate {

// What a list needs to know of a parked message; the message itself may be large.
struct ParkedSummary {
  std::int64_t number = 0;
  std::int64_t parked_ms = 0;
  std::string reason;
  std::string id;
  std::int64_t timestamp_ms = 0;
  std::string topic = {};  // where it came from; empty: the source has no topics
};

// Parked messages that failed for the same reason, but for numbers and names in it.
struct FailureGroup {
  // That of its first message, so that it stays the same while others come and go.
  std::int64_t number = 0;
  std::string reason;  // masked, see model/reason.h
  std::vector<std::size_t> members;
};

// In the order of their first messages; `parked` is in the order of numbers.
std::vector<FailureGroup> failure_groups(const std::vector<ParkedSummary>& parked);

}  // namespace once::operate
