// SPDX-License-Identifier: Apache-2.0
// What a lane tells the store about its partitions beside their positions: how far the births of
// settled messages reach, which is the oldest that waits, and that there is nothing left. The
// horizon follows from it, for all processes (forgetter.h).
#include <algorithm>

#include "base/mutant.h"
#include "model/witness.h"
#include "runtime/lane.h"

namespace once {
// The oldest birth among what is queued of it, from `from` on; -1: nothing is.
std::int64_t Lane::waiting_ms(const Owned& partition, std::size_t Task::*from) const {
  std::int64_t oldest_ms = -1;
  for (const auto& task : tasks_) {
    if (task->owned != &partition || (*task).*from >= task->items.size()) continue;
    const std::int64_t task_ms = task->items[(*task).*from].oldest_ms;
    if (task_ms >= 0) oldest_ms = oldest_ms < 0 ? task_ms : std::min(oldest_ms, task_ms);
  }
  return mutant(Mutant::waiting_does_not_count) ? -1 : oldest_ms;
}

// What `advance` records if this attempt succeeds; `last` is the last message of the partition.
Progress Lane::progress_after(const Item& last) const {
  const Owned& partition = *last.task->owned;
  return {.settled_ms = partition.selected_ms,
          .waiting_ms = waiting_ms(partition, &Task::selected),
          .drained = false,
          .witness = witness_of(last.delivery)};
}

void Lane::drained(std::string_view partition, std::int64_t settled_ms) {
  const auto found = owned_.find(partition);
  if (found != owned_.end() && parts_.positions) found->second->drained_ms = settled_ms;
}

bool Lane::is_drained(const Owned& partition) const {
  if (!partition.drained_ms) return false;
  const bool waits = std::any_of(tasks_.begin(), tasks_.end(),
                                 [&](const auto& task) { return task->owned == &partition; });
  return !waits || mutant(Mutant::waiting_does_not_count);
}

// A message that is retried, or that waits for something else than the store, holds the horizon
// although nothing advances. The store has to know, once.
bool Lane::is_stuck(const Owned& partition) const {
  if (!parts_.positions || !(partition.blocked || store_failures_ > 1)) return false;
  const std::int64_t oldest_ms = waiting_ms(partition, &Task::next);
  return oldest_ms >= 0 && partition.stored_waiting_ms != oldest_ms &&
         (partition.settled_ms < 0 || oldest_ms < partition.settled_ms);
}

bool Lane::has_news() const {
  return std::any_of(owned_.begin(), owned_.end(),
                     [this](const auto& owned) { return is_drained(*owned.second); });
}

Status Lane::publish() {
  for (const auto& [name, partition] : owned_) {
    const bool drained = is_drained(*partition);
    if (!drained && !is_stuck(*partition)) continue;
    if (drained) {
      partition->settled_ms = std::max(partition->settled_ms, *partition->drained_ms);
      partition->drained_ms.reset();
    }
    const Progress progress{.settled_ms = partition->settled_ms,
                            .waiting_ms = waiting_ms(*partition, &Task::next),
                            .drained = drained};
    const Status published = publish(*partition, progress);
    if (published) {
      partition->stored_waiting_ms = progress.waiting_ms;
      continue;
    }
    // A position that one of our own commits has moved is found out by the next attempt.
    const bool fenced = published.error().tag == "fenced";
    if (fenced && !partition->doubted) return published;
    if (fenced || drained) continue;
    wait_for_store(published.error());
  }
  return {};
}

Status Lane::publish(const Owned& partition, const Progress& progress) {
  auto transaction = ONCE_TRY(parts_.store.begin(parts_.options.scope));
  ONCE_TRY(transaction->advance(partition.name, partition.position, partition.position.offset,
                                progress));
  return transaction->commit();
}

}  // namespace once
