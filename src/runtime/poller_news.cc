// SPDX-License-Identifier: Apache-2.0
// What the lanes have done: acknowledged, given back, and the positions that follow them.
#include <algorithm>
#include <span>
#include <utility>

#include "base/failpoint.h"
#include "runtime/poller.h"

namespace once {

Status Poller::collect_news() {
  for (const auto& lane : lanes_) {
    const LaneThread::News news = lane->take_news();
    for (const Lane::Births& births : news.identified) identified(births);
    for (const Batch& batch : news.finished) ONCE_TRY(finished(batch));
    for (const Lane::GivenBack& message : news.given_back) ONCE_TRY(given_back(message));
    if (news.failure) return fail(*news.failure);
  }
  if (auto too_many = parked_share_.exceeded(options_.scope)) return fail(std::move(*too_many));
  ONCE_TRY(advance_watermarks());
  lag_.update();
  return {};
}

void Poller::identified(const Lane::Births& births) {
  const auto found = partitions_.find(births.partition);
  if (found == partitions_.end()) return;  // taken away since
  for (const auto& [tag, born_ms] : births.born_ms)
    found->second.watermark.identified(tag, born_ms);
}

// What the source did not hear of comes again in any case, and is known then.
Status Poller::heard(const Status& told) const {
  return told || is_final(told.error()) ? told : Status{};
}

// It comes again, here or elsewhere.
Status Poller::given_back(const Lane::GivenBack& message) {
  lease_keeper_.let_go(message.batch.deliveries);
  if (const auto found = partitions_.find(message.batch.partition); found != partitions_.end())
    for (const Delivery& delivery : message.batch.deliveries)
      found->second.watermark.given_back(tag_of(delivery));
  return heard(
      source_.release(message.batch.deliveries, std::min(message.delay_ms, traits_.delay_ms_max)));
}

// An error changes nothing: what is due is due again, and what is away is told by a poll.
void Poller::extend_leases() { (void)lease_keeper_.step(clock_.ticks_ns()); }

Status Poller::finished(const Batch& batch) {
  if (Lane::is_deferred(batch)) {
    --due_batches_;
    return {};
  }
  lease_keeper_.let_go(batch.deliveries);
  const auto found = partitions_.find(batch.partition);
  if (found == partitions_.end()) return {};  // taken away since
  Partition& partition = found->second;
  if (!batch.deliveries.empty())
    lag_.handled(batch.partition, std::max(batch.end_offset, batch.deliveries.back().offset + 1));
  if (by_key() && traits_.ordered) {
    for (const Delivery& delivery : batch.deliveries) partition.watermark.settled(tag_of(delivery));
    return {};  // acknowledged with the watermark
  }
  if (!has_positions())
    for (const Delivery& delivery : batch.deliveries)
      partition.watermark.settled_apart(tag_of(delivery));
  if (acks_first()) return {};
  ONCE_TRY(heard(source_.ack(batch.deliveries)));
  ONCE_POINT(lane_after_ack);
  return {};
}

// Lanes that share a partition do not move its position: it follows them, and after a crash the
// ledger knows what was done beyond it.
Status Poller::advance_watermarks() {
  if (!by_key() || !traits_.ordered) return {};
  for (auto& owned : partitions_) {
    const std::string& name = owned.first;
    Partition& partition = owned.second;
    const auto moved = partition.watermark.take();
    if (!moved) continue;
    if (traits_.replayable)
      ONCE_TRY(until_answered([&] { return move_position(name, partition, *moved); }));
    Delivery last;
    last.partition = name;
    last.offset = *moved - 1;
    ONCE_TRY(heard(source_.ack(std::span(&last, 1))));
  }
  return {};
}

// The position of a partition that lanes share. Whether a commit whose answer was lost has happened
// is read back; another owner's fence stays another's.
Status Poller::move_position(std::string_view name, Partition& partition, std::int64_t to) {
  Position& position = partition.position;
  const Position now = ONCE_TRY(store_.position(options_.scope, name));
  if (now.fence == position.fence && now.offset == to) {
    position = now;
    return {};
  }
  const Progress progress = partition.watermark.progress();
  auto transaction = ONCE_TRY(store_.begin(options_.scope));
  ONCE_TRY(transaction->advance(name, position, to, progress));
  ONCE_TRY(transaction->commit());
  position.offset = to;
  partition.stored_waiting_ms = progress.waiting_ms;
  return {};
}

// The progress alone, of a partition that lanes share.
Status Poller::publish(std::string_view name, Partition& partition, const Progress& progress) {
  auto transaction = ONCE_TRY(store_.begin(options_.scope));
  ONCE_TRY(transaction->advance(name, partition.position, partition.position.offset, progress));
  ONCE_TRY(transaction->commit());
  partition.stored_waiting_ms = progress.waiting_ms;
  return {};
}

}  // namespace once
