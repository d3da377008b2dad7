// SPDX-License-Identifier: Apache-2.0
// What the lanes get to do.
#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "model/witness.h"
#include "runtime/poller.h"
#include "runtime/spread.h"

namespace once {
namespace {

constexpr std::int64_t poller_wait_ms = 20;  // the poller looks around at least this often

}  // namespace

// In order, the next batch may be for any lane; without order any lane takes it.
bool Poller::has_room() const {
  const auto room = [this](const auto& lane) {
    return lane->queued() < options_.queue_batches_max;
  };
  return keeps_order() ? std::all_of(lanes_.begin(), lanes_.end(), room)
                       : std::any_of(lanes_.begin(), lanes_.end(), room);
}

bool Poller::lanes_idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->held() == 0; });
}

void Poller::wait_for_lanes() {
  std::unique_lock lock(news_mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(poller_wait_ms), [this] { return woken_; });
  woken_ = false;
}

Status Poller::dispatch(Batch batch) {
  const auto found = partitions_.find(batch.partition);
  if (found == partitions_.end()) return heard(source_.release(batch.deliveries));
  Partition& partition = found->second;
  ONCE_TRY(partition.witness.check(options_.scope, batch));
  lag_.delivered(batch.partition, batch.end_offset);
  if (traits_.ordered && batch.available_offset >= 0)
    lag_.ends_at(batch.partition, batch.available_offset);
  if (batch.deliveries.empty()) return {};
  events_.back(the_source, {}, &lag_);
  if (acks_first())
    ONCE_TRY(source_.ack(batch.deliveries));
  else
    lease_keeper_.took(batch.deliveries, clock_.ticks_ns());
  if (by_key()) {
    dispatch_by_key(std::move(batch), partition);
  } else {
    const std::int64_t end_offset = batch.end_offset;
    const std::size_t lane = keeps_order() ? partition.lane : least_loaded(lanes_, next_lane_++);
    push(lane, std::move(batch), end_offset, partition);
  }
  return {};
}

// Messages of one key go to one lane; all lanes share the batch's memory.
std::vector<Batch> Poller::parts_by_key(const Batch& batch) const {
  std::vector<Batch> parts(lanes_.size());
  for (Batch& part : parts) {
    part.partition = batch.partition;
    part.memory = batch.memory;
  }
  for (const Delivery& delivery : batch.deliveries)
    parts[std::hash<std::string_view>{}(delivery.key) % lanes_.size()].deliveries.push_back(
        delivery);
  return parts;
}

void Poller::dispatch_by_key(Batch batch, Partition& partition) {
  const std::int64_t last = batch.deliveries.back().offset;
  auto parts = parts_by_key(batch);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].deliveries.empty()) continue;
    const bool has_last = parts[i].deliveries.back().offset == last;
    push(i, std::move(parts[i]), has_last ? batch.end_offset : -1, partition);
  }
}

// `end_offset` is the position behind the last of these; -1: the next offset.
void Poller::push(std::size_t lane, Batch batch, std::int64_t end_offset, Partition& partition) {
  if (!lanes_move_positions())
    for (const Delivery& delivery : batch.deliveries) {
      const bool last = &delivery == &batch.deliveries.back();
      partition.watermark.started(
          tag_of(delivery), has_positions() ? witness_of(delivery) : Witness{delivery.offset, 0},
          last && end_offset >= 0 ? end_offset : delivery.offset + 1);
    }
  lanes_[lane]->push(std::move(batch));
}

// Messages that waited in the store and are due, to the lanes of their keys. Whether there were
// any, or the store could not be asked; then it is asked again later.
Result<bool> Poller::hand_out_due(bool now) {
  if (due_batches_ > 0) return true;
  const std::uint64_t deferred = counters_.deferred;
  if (std::exchange(deferred_seen_, deferred) != deferred) due_feed_.notice_deferred();
  auto due = due_feed_.poll(now);
  if (!due) {
    if (due.error().remedy == Remedy::stop) return fail(std::move(due).error());
    events_.away(the_store, {}, &due_feed_, due.error());
    return true;
  }
  events_.back(the_store, {}, &due_feed_);
  if (!*due) return false;
  auto parts = parts_by_key(**due);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].deliveries.empty()) continue;
    lanes_[i]->push(std::move(parts[i]));
    ++due_batches_;
  }
  return true;
}

}  // namespace once
