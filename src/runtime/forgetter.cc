// SPDX-License-Identifier: Apache-2.0
#include "runtime/forgetter.h"

#include <algorithm>

#include "base/mutant.h"

namespace once {

std::int64_t reach_ms(const PartitionRecord& partition) {
  return partition.waiting_ms < 0 ? partition.settled_ms
                                  : std::min(partition.settled_ms, partition.waiting_ms);
}

void Forgetter::disown(std::string_view partition) {
  if (const auto found = owned_.find(partition); found != owned_.end()) owned_.erase(found);
}

void Forgetter::confirm_topic(std::vector<std::string> partitions) {
  topic_ = std::move(partitions);
  removed_.merge(unlisted_);
  unlisted_.clear();
  for (const std::string& name : topic_) removed_.erase(name);
}

bool Forgetter::is_unlisted(const PartitionRecord& record) const {
  if (mutant(Mutant::added_partition_ignored)) return false;
  const std::string& name = record.partition;
  return !topic_.empty() && !owned_.contains(name) && !removed_.contains(name) &&
         std::find(topic_.begin(), topic_.end(), name) == topic_.end();
}

void Forgetter::observe(std::string_view partition, const Progress& progress) {
  const auto found = owned_.find(partition);
  if (found == owned_.end()) return;  // it is no longer ours
  if (!found->second) found->second = PartitionRecord{.partition = found->first};
  PartitionRecord& record = *found->second;
  record.settled_ms = std::max(record.settled_ms, progress.settled_ms);
  record.waiting_ms = progress.waiting_ms;
}

// Those that count: the topic's, or all that the store knows and all of ours.
std::map<std::string, PartitionRecord> Forgetter::partitions_of(const ScopeRecord& scope) const {
  std::map<std::string, PartitionRecord> partitions;
  for (const std::string& name : topic_) partitions[name];
  for (const auto& [name, record] : owned_) partitions[name];
  for (const PartitionRecord& record : scope.partitions)
    if (topic_.empty() || partitions.contains(record.partition))
      partitions[record.partition] = record;
  for (const auto& [name, record] : owned_)
    if (record) partitions[name] = *record;
  if (mutant(Mutant::horizon_of_own_partitions))
    std::erase_if(partitions, [&](const auto& one) { return !owned_.contains(one.first); });
  return partitions;
}

void Forgetter::decide(const ScopeRecord& scope) {
  horizon_ms_.reset();
  held_back_by_.clear();
  if (owned_.empty()) return;  // what the topic has is known with the first partition
  for (const PartitionRecord& record : scope.partitions)
    if (is_unlisted(record)) unlisted_.insert(record.partition);
  if (!unlisted_.empty()) return;
  const auto partitions = partitions_of(scope);
  youngest_ms_ = -1;
  for (const auto& [name, record] : partitions)
    youngest_ms_ = std::max(youngest_ms_, record.settled_ms);
  if (youngest_ms_ < 0) return;  // nothing is settled anywhere
  bool known = true;
  std::int64_t slowest_ms = youngest_ms_;
  for (const auto& [name, record] : partitions) {
    const std::int64_t reached_ms = reach_ms(record);
    known = known && record.settled_ms >= 0;
    slowest_ms = std::min(slowest_ms, reached_ms);
    if (owned_.contains(name) && reached_ms <= youngest_ms_ - step_ms()) held_back_by_.insert(name);
  }
  if (!known) return;
  if (!mutant(Mutant::births_ahead_believed)) slowest_ms = std::min(slowest_ms, scope.now_ms);
  horizon_ms_ = slowest_ms - options_.retention_ms;
}

Status Forgetter::look() {
  Records* const records = store_.records();
  if (records == nullptr) return {};  // without what it knows, nothing is forgotten
  seen_.reset();
  seen_ = ONCE_TRY(records->describe(options_.scope));
  if (seen_->now_ms > 0) store_clock_.measured(seen_->now_ms);
  if (forgets()) decide(*seen_);
  return {};
}

std::optional<std::int64_t> Forgetter::take_held_back(std::string_view partition) {
  const auto found = held_back_by_.find(partition);
  if (found == held_back_by_.end()) return std::nullopt;
  held_back_by_.erase(found);
  return youngest_ms_;
}

Result<Forgotten> Forgetter::step(std::size_t rows_max) {
  if (!forgets()) return Forgotten{};
  // Each time anew: what was decided before may be wrong by now, and a store may take its time.
  ONCE_TRY(look());
  if (mutant(Mutant::horizon_by_wall_clock)) horizon_ms_ = clock_.now_ms() - options_.retention_ms;
  if (!horizon_ms_ || *horizon_ms_ <= 0) return Forgotten{};
  return store_.forget(options_.scope, *horizon_ms_ - *horizon_ms_ % step_ms(), rows_max);
}

}  // namespace once
