// SPDX-License-Identifier: Apache-2.0
// Which partitions are ours, and from where they are read.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/poller.h"

namespace once {

// We are the owner from now on, and go on where the committed effects end, whatever the broker
// believes.
Status Poller::assigned(std::string_view name) {
  Partition& partition = partitions_[std::string(name)];
  partition.lane = next_lane_++ % lanes_.size();
  handover_.assigned.emplace_back(name);
  lag_.own(name, -1);
  const SourceTraits now = source_.traits();
  partition_count_ = now.partitions.size();
  forgetter_.set_topic(now.partitions);
  forgetter_.own(name);
  // The store's clock is known before the first message is judged by it.
  ONCE_TRY(until_answered([&] { return forgetter_.look(); }));
  tell_clocks();
  if (!traits_.replayable) return look_for_waiting();
  // Taking it again does no harm: the fence only grows.
  partition.position =
      ONCE_TRY(until_answered([&] { return store_.take(options_.scope, name, now.identity); }));
  lag_.own(name, partition.position.offset);
  partition.witness = WitnessCheck(partition.position, now, name);
  ONCE_TRY(partition.witness.seek(*source_.replay(), name));
  ONCE_TRY(look_for_waiting());
  if (lanes_move_positions()) lanes_[partition.lane]->own(std::string(name), partition.position);
  return {};
}

// Whether messages wait in the store that an earlier owner has put off: those of this partition may
// have to wait behind them. Asked when the partition is ours: what the earlier owner puts off after
// that is delivered to us, too, and the lane is told by its record.
Status Poller::look_for_waiting() {
  if (!by_key()) return {};
  return until_answered([&] { return due_feed_.look(); });
}

Status Poller::revoked(std::string_view name) {
  handover_.revoked.emplace_back(name);
  for (const auto& lane : lanes_) lane->disown(std::string(name));
  forgetter_.disown(name);
  lease_keeper_.drop(name);
  lag_.disown(name);
  if (const auto found = partitions_.find(name); found != partitions_.end())
    partitions_.erase(found);
  return {};
}

// Partitions change hands in groups: they are told together, when the source has nothing more to
// say about them.
void Poller::tell_handover() {
  const auto tell = [this](EventKind kind, std::string_view verb, std::vector<std::string>& names) {
    if (names.empty()) return;
    const std::string list = list_of(names);
    events_.tell({.severity = Severity::info,
                  .kind = kind,
                  .text = fmt::format("{} {}", verb, list),
                  .subject = list});
    names.clear();
  };
  tell(EventKind::partitions_revoked, "no longer owns", handover_.revoked);
  tell(EventKind::partitions_assigned, "owns", handover_.assigned);
  if (!partitions_.empty()) return events_.back(the_group, {}, this);
  static const Error nothing_assigned{
      Remedy::retry, "group",
      "none is assigned to this process; other members of its group have them, or the group is "
      "about to share them out",
      std::nullopt};
  events_.away(the_group, {}, this, nothing_assigned);
}

// Nothing more is there. Whether every partition is known to be the one that its position belongs
// to; if not, the source goes on.
Result<bool> Poller::check_witnesses() {
  SourceReplay* const replay = source_.replay();
  if (replay == nullptr) return true;  // without positions there are no witnesses
  bool known = true;
  for (auto& [name, partition] : partitions_)
    known = ONCE_TRY(partition.witness.check_end(options_.scope, *replay, name)) && known;
  return known;
}

// Everything that is there was delivered; what the source counts beyond it are no messages.
void Poller::drained() {
  if (traits_.ordered) lag_.drained();
  for (auto& [name, partition] : partitions_)
    if (const auto settled_ms = forgetter_.take_held_back(name))
      drained(name, partition, *settled_ms);
  lag_.update();
  if (options_.stop_at_end && lanes_idle()) ended_ = true;
}

// A partition without traffic must not hold the horizon back: once all of it is settled, the store
// is told that it has come as far as the others. An error changes nothing; it is told later.
void Poller::drained(const std::string& name, Partition& partition, std::int64_t settled_ms) {
  if (lanes_move_positions()) return lanes_[partition.lane]->drained(name, settled_ms);
  if (!partition.watermark.idle()) return;
  Progress progress = partition.watermark.progress();
  progress.settled_ms = std::max(progress.settled_ms, settled_ms);
  progress.drained = true;
  if (has_positions())
    (void)publish(name, partition, progress);
  else
    forgetter_.observe(name, progress);
}

}  // namespace once
