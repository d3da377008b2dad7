// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/pipeline.h>
#include <once/records.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/role.h"

namespace once {

// The scope of the claims by which one process at a time handles the messages of a scope that wait.
inline constexpr std::string_view later_scope = "once.later";

// Messages that waited, as a lane gets them (Lane::is_deferred).
[[nodiscard]] Batch due_batch(std::vector<DeferredRecord> records);

// Brings the messages that wait in the store and are due. Of several processes one has the role (a
// claim with a lease) and handles them, whichever of them put them off and whether or not it is
// there still. That only saves work: a message that two processes handle has its effect once, since
// `admit` tells the slower one. Used by one thread; owns none.
class DueFeed {
 public:
  // `may_wait` is set when messages are seen that wait.
  DueFeed(Store& store, Clock& clock, const PipelineOptions& options, std::atomic<bool>& may_wait);

  // Messages that are due and ours, if there are any; asks the store only when that is worth it, or
  // with `now`. They are brought again until they are settled: the caller asks when it is done with
  // the last ones.
  [[nodiscard]] Result<std::optional<Batch>> poll(bool now = false);

  // Only whether messages wait.
  [[nodiscard]] Status look();

  // Something was put off: it may be due before the next look.
  void notice_deferred() { look_at_ns_ = 0; }

 private:
  bool can_wait() const;
  Result<bool> is_ours();

  Deferrals* const deferrals_;
  Clock& clock_;
  const PipelineOptions& options_;
  std::atomic<bool>& may_wait_;
  std::optional<Role> role_;  // unset: the store has no claims, and all handle them
  std::int64_t look_at_ns_ = 0;
};

}  // namespace once
