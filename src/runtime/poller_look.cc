// SPDX-License-Identifier: Apache-2.0
// What nobody tells the poller: whether a position was set by hand, where the topic ends, how far
// other owners have come, and what may be forgotten.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "model/ledger.h"
#include "runtime/poller.h"

namespace once {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t look_around_ns = 2'000 * ns_per_ms;
constexpr std::int64_t forget_interval_ns = 500 * ns_per_ms;
// Clocks that differ by less are usual.
constexpr std::int64_t clocks_differ_ms = 60'000;

}  // namespace

// Where lanes do not move positions, a message that waits is told here; lanes do it themselves.
void Poller::tell_progress() {
  if (lanes_move_positions()) return;
  for (auto& [name, partition] : partitions_) {
    const Progress progress = partition.watermark.progress();
    if (!has_positions())
      forgetter_.observe(name, progress);
    else if (progress.waiting_ms != partition.stored_waiting_ms && progress.waiting_ms >= 0)
      (void)publish(name, partition, progress);  // if it fails, next time
  }
}

void Poller::forget_sometimes() {
  const std::int64_t now_ns = clock_.ticks_ns();
  if (now_ns < forget_after_ns_) return;
  tell_progress();
  tell_clocks();
  const auto forgotten = forgetter_.step();
  if (forgotten) counters_.forgotten += forgotten->rows;
  // More to forget: soon again, in small steps, so that the lanes get their turn in between. An
  // error changes nothing: what is not forgotten now is forgotten later.
  const bool more = forgotten && forgotten->more;
  forget_after_ns_ = now_ns + (more ? forget_interval_ns / 25 : forget_interval_ns);
}

void Poller::tell_clocks() {
  if (!store_clock_.is_measured()) return;
  const std::int64_t ahead_ms = store_clock_.now_ms() - clock_.now_ms();
  if (std::abs(ahead_ms) < clocks_differ_ms) return;
  events_.count({.severity = Severity::warning,
                 .kind = EventKind::clocks_differ,
                 .text = fmt::format(
                     "the store's clock is {} s {} this machine's: messages born here look {} than "
                     "they are. Set the clocks, by NTP for example",
                     std::abs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind",
                     ahead_ms > 0 ? "older" : "younger"),
                 .duration_ms = std::abs(ahead_ms)});
}

// The forgetter has read the same a moment ago, if there is anything to forget; only otherwise is
// the store asked for it.
Status Poller::look_around() {
  if (clock_.ticks_ns() < look_around_after_ns_ || source_.replay() == nullptr) return {};
  if (has_positions() && !forgetter_.looks_by_itself())
    (void)forgetter_.look();  // a store that is away is told by the lanes
  const ScopeRecord* const stored = has_positions() ? forgetter_.last_seen() : nullptr;
  if (stored != nullptr) ONCE_TRY(check_positions(*stored));
  look_at_ends(stored);
  look_around_after_ns_ = clock_.ticks_ns() + look_around_ns;
  return {};
}

// A commit would find it out, but nothing is committed where nothing comes. A person's position is
// told by what it clears. One that another process has taken is not: that process may be of our
// group, and then the source says what is ours.
Status Poller::check_positions(const ScopeRecord& stored) const {
  for (const PartitionRecord& record : stored.partitions) {
    const auto owned = partitions_.find(record.partition);
    if (owned == partitions_.end()) continue;
    const Position& ours = owned->second.position;
    const bool set_by_hand = record.source_identity.empty() && record.position.witness == Witness{};
    if (record.position.fence > ours.fence && set_by_hand)
      return fail(fenced_error(options_.scope, record.partition, ours, record.position));
  }
  return {};
}

void Poller::look_at_ends(const ScopeRecord* stored) {
  const auto ends = source_.replay()->ends();
  if (!ends) {
    // What is wrong for good is told by a poll.
    if (ends.error().remedy == Remedy::retry) events_.away(the_source, {}, &lag_, ends.error());
    return;
  }
  events_.back(the_source, {}, &lag_);
  const SourceTraits now = source_.traits();
  partition_count_ = now.partitions.size();
  forgetter_.confirm_topic(now.partitions);
  lag_.look(*ends, stored);
  lag_.update();
}

}  // namespace once
