// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/pipeline.h>
#include <once/records.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/store_clock.h"

namespace once {

// How far a partition lets the horizon come, before the retention is taken off; -1: not known yet.
[[nodiscard]] std::int64_t reach_ms(const PartitionRecord& partition);

// Decides how far the ledger may forget. The horizon follows the progress of the source, not the
// wall clock: it is the retention before the youngest settled message, or before what the slowest
// partition of the scope has reached, whichever process owns it, and never later than the store's
// clock allows. So hours of downtime, a member that lags behind, a message that is retried and a
// birth in the future do not make old messages look forgotten. Used by one thread.
class Forgetter {
 public:
  Forgetter(Store& store, Clock& clock, const PipelineOptions& options, StoreClock& store_clock)
      : store_(store), clock_(clock), options_(options), store_clock_(store_clock) {}

  // All partitions of the topic, whoever owns them, as far as the source knows; empty: not known.
  void set_topic(std::vector<std::string> partitions) { topic_ = std::move(partitions); }
  // The same, as the broker says now. What the store has and this does not is no longer read, and
  // does not hold the horizon back. Before it is asked that can be a partition that was added, and
  // that another process has taken: the horizon waits.
  void confirm_topic(std::vector<std::string> partitions);
  void own(std::string_view partition) { owned_.try_emplace(std::string(partition)); }
  void disown(std::string_view partition);
  // The progress of a partition of ours that the store does not keep, for it has no position.
  void observe(std::string_view partition, const Progress& progress);

  // Reads what the store knows; its clock is measured by the way.
  [[nodiscard]] Status look();
  // Whether `step` looks; otherwise there is nothing to forget, and only others want to know.
  bool looks_by_itself() const { return forgets(); }
  // What the last look found; nullptr if it failed, or the store has no records.
  const ScopeRecord* last_seen() const { return seen_ ? &*seen_ : nullptr; }

  // Below this may be forgotten, as of the last look; unset while that is not known.
  std::optional<std::int64_t> horizon_ms() const { return horizon_ms_; }

  // If this partition of ours holds the horizon back: how far the others have come. Where there is
  // nothing left of it, it has come as far, and the store is to be told. Answers once per look.
  std::optional<std::int64_t> take_held_back(std::string_view partition);

  // Forgets one bounded step; answers how many ids. The store gets the horizon in steps of a
  // hundredth of the retention: each new one costs it a commit and a walk through the ledger.
  [[nodiscard]] Result<Forgotten> step(std::size_t rows_max = 1000);

 private:
  bool forgets() const { return options_.id && options_.retention_ms >= 0; }
  std::int64_t step_ms() const { return std::max<std::int64_t>(1, options_.retention_ms / 100); }
  std::map<std::string, PartitionRecord> partitions_of(const ScopeRecord& scope) const;
  void decide(const ScopeRecord& scope);

  Store& store_;
  Clock& clock_;
  const PipelineOptions& options_;
  StoreClock& store_clock_;
  bool is_unlisted(const PartitionRecord& record) const;
  std::vector<std::string> topic_;
  std::set<std::string, std::less<>> unlisted_;  // in the store and not in the topic, as we know it
  std::set<std::string, std::less<>> removed_;   // not in the topic for sure
  std::map<std::string, std::optional<PartitionRecord>, std::less<>> owned_;
  std::set<std::string, std::less<>> held_back_by_;
  std::optional<ScopeRecord> seen_;
  std::int64_t youngest_ms_ = -1;  // the youngest birth that is settled anywhere
  std::optional<std::int64_t> horizon_ms_;
};

}  // namespace once
