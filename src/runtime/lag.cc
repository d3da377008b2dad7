// SPDX-License-Identifier: Apache-2.0
#include "runtime/lag.h"

#include <algorithm>

namespace once {

void Lag::own(std::string_view partition, std::int64_t offset) {
  const auto other = others_.find(partition);
  if (other != others_.end()) others_.erase(other);
  Owned& owned = owned_[std::string(partition)];
  owned.delivered_end = owned.handled_end = offset;
}

void Lag::disown(std::string_view partition) {
  const auto found = owned_.find(partition);
  if (found != owned_.end()) owned_.erase(found);
}

void Lag::delivered(std::string_view partition, std::int64_t end_offset) {
  const auto found = owned_.find(partition);
  if (found == owned_.end()) return;
  found->second.delivered_end = std::max(found->second.delivered_end, end_offset);
}

void Lag::handled(std::string_view partition, std::int64_t end_offset) {
  const auto found = owned_.find(partition);
  if (found == owned_.end()) return;
  found->second.handled_end = std::max(found->second.handled_end, end_offset);
}

void Lag::ends_at(std::string_view partition, std::int64_t end_offset) {
  const auto found = owned_.find(partition);
  if (found == owned_.end()) return;
  found->second.available = found->second.end_seen = end_offset;
}

void Lag::drained() {
  for (auto& [name, owned] : owned_)
    owned.available = std::max<std::int64_t>(owned.delivered_end, 0);
}

void Lag::look(std::span<const PartitionEnd> ends, const ScopeRecord* stored) {
  others_.clear();
  for (const PartitionEnd& end : ends) {
    if (const auto found = owned_.find(end.partition); found != owned_.end()) {
      // What was counted once and turned out to be no message is not counted again.
      if (end.offset > found->second.end_seen)
        found->second.available = found->second.end_seen = end.offset;
    } else if (stored != nullptr) {
      const auto record = std::find_if(
          stored->partitions.begin(), stored->partitions.end(),
          [&](const PartitionRecord& candidate) { return candidate.partition == end.partition; });
      const std::int64_t offset = record == stored->partitions.end() ? 0 : record->position.offset;
      others_[end.partition] =
          std::max<std::int64_t>(0, end.offset - std::max<std::int64_t>(offset, 0));
    }
  }
}

void Lag::update() {
  std::int64_t lag = 0;
  std::size_t known = others_.size();
  for (const auto& [name, others] : others_) lag += others;
  for (const auto& [name, owned] : owned_) {
    if (owned.available < 0) continue;
    ++known;
    lag +=
        std::max<std::int64_t>(0, owned.available - std::max<std::int64_t>(owned.handled_end, 0));
  }
  messages_ = known == 0 ? -1 : lag;
  partitions_ = known;
}

}  // namespace once
