// SPDX-License-Identifier: Apache-2.0
#include "testing/memory_queue.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/mutant.h"
#include "model/message_view.h"

namespace once::testing {
namespace {

constexpr const char* partition_name = "queue";

// What a batch refers to.
struct Memory {
  std::vector<MemoryQueue::Delivered> delivered;
  std::vector<std::vector<HeaderView>> headers;
};

}  // namespace

void MemoryQueue::send(Message message) {
  const std::lock_guard lock(mutex_);
  ready_.push_back({std::move(message), 1, now_ms()});
}

std::size_t MemoryQueue::ready() const {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

std::size_t MemoryQueue::unacknowledged() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [number, session] : sessions_) count += session.held.size();
  return count;
}

std::vector<std::string> MemoryQueue::acknowledged() const {
  const std::lock_guard lock(mutex_);
  return acknowledged_;
}

std::uint64_t MemoryQueue::open_session() {
  const std::lock_guard lock(mutex_);
  sessions_[++last_session_];
  return last_session_;
}

void MemoryQueue::close_session(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Session* const session = find(number);
  if (session == nullptr) return;
  for (auto& [tag, held] : session->held) make_ready(std::move(held.entry), 0);
  sessions_.erase(number);
}

MemoryQueue::Session* MemoryQueue::find(std::uint64_t session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

void MemoryQueue::make_ready(Entry entry, std::int64_t delay_ms) {
  ++entry.attempt;
  entry.ready_ms = now_ms() + delay_ms;
  ready_.push_back(std::move(entry));
}

void MemoryQueue::return_expired() {
  if (options_.lease_ms < 0) return;
  for (auto& [number, session] : sessions_)
    for (auto held = session.held.begin(); held != session.held.end();) {
      if (held->second.lease_until_ms > now_ms()) {
        ++held;
        continue;
      }
      make_ready(std::move(held->second.entry), 0);
      held = session.held.erase(held);
    }
}

std::optional<MemoryQueue::Entry> MemoryQueue::next() {
  std::vector<std::size_t> indexes;
  for (std::size_t i = 0; i < ready_.size() && (options_.pick || indexes.empty()); ++i)
    if (ready_[i].ready_ms <= now_ms()) indexes.push_back(i);
  if (indexes.empty()) return std::nullopt;
  const std::size_t chosen = indexes[options_.pick ? options_.pick(indexes.size()) : 0];
  Entry entry = std::move(ready_[chosen]);
  ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
  return entry;
}

std::vector<MemoryQueue::Delivered> MemoryQueue::deliver(std::uint64_t number,
                                                         std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  return_expired();
  std::vector<Delivered> delivered;
  Session* const session = find(number);
  const std::size_t limit = options_.unacknowledged_max;
  while (session != nullptr && delivered.size() < count_max &&
         (limit == 0 || session->held.size() < limit)) {
    auto entry = next();
    if (!entry) break;
    const std::int64_t tag = ++session->last_tag;
    delivered.push_back({tag, entry->attempt, entry->message});
    session->held[tag] = {std::move(*entry), now_ms() + options_.lease_ms};
  }
  return delivered;
}

// Unset: its lease or its session is over, or it was settled before.
std::optional<MemoryQueue::Entry> MemoryQueue::take_held(std::uint64_t number, std::int64_t tag) {
  return_expired();
  Session* const session = find(number);
  if (session == nullptr) return std::nullopt;
  auto held = session->held.extract(tag);
  if (held.empty()) return std::nullopt;
  return std::move(held.mapped().entry);
}

void MemoryQueue::acknowledge(std::uint64_t number, std::int64_t tag) {
  const std::lock_guard lock(mutex_);
  if (const auto entry = take_held(number, tag)) acknowledged_.push_back(entry->message.id);
}

void MemoryQueue::release(std::uint64_t number, std::int64_t tag, std::int64_t delay_ms) {
  const std::lock_guard lock(mutex_);
  if (auto entry = take_held(number, tag))
    make_ready(std::move(*entry), std::min(delay_ms, options_.delay_ms_max));
}

void MemoryQueue::extend(std::uint64_t number, std::int64_t tag) {
  const std::lock_guard lock(mutex_);
  return_expired();
  Session* const session = find(number);
  if (session == nullptr) return;
  const auto held = session->held.find(tag);
  if (held != session->held.end()) held->second.lease_until_ms = now_ms() + options_.lease_ms;
}

SourceTraits QueueSource::traits() const {
  const MemoryQueueOptions& options = queue_->options();
  return {.name = "queue:",
          .ordered = false,
          .replayable = false,
          .redelivery_ms_max = options.redelivery_ms_max,
          .lease_ms = options.lease_ms,
          .delay_ms_max = options.delay_ms_max,
          .unacknowledged_max = options.unacknowledged_max};
}

Result<Batch> QueueSource::poll(std::size_t count_max, std::int64_t wait_ms) {
  Batch batch;
  if (!std::exchange(announced_, true)) {
    batch.event = Batch::Event::assigned;
    batch.partition = partition_name;
    return batch;
  }
  if (session_ == 0) session_ = queue_->open_session();
  const auto memory = std::make_shared<Memory>();
  memory->delivered = queue_->deliver(session_, count_max);
  if (memory->delivered.empty()) {
    batch.drained = count_max > 0 && queue_->ready() == 0;
    if (wait_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return batch;
  }
  for (const MemoryQueue::Delivered& one : memory->delivered)
    memory->headers.push_back(header_views(one.message));
  batch.partition = partition_name;
  for (std::size_t i = 0; i < memory->delivered.size(); ++i) {
    const MemoryQueue::Delivered& one = memory->delivered[i];
    Delivery& delivery = batch.deliveries.emplace_back();
    delivery.partition = partition_name;
    delivery.offset = one.tag;
    delivery.session = session_;
    delivery.attempt = one.attempt;
    delivery.id = one.message.id;
    delivery.key = view_of(one.message.key);
    delivery.body = view_of(one.message.body);
    delivery.headers = memory->headers[i];
    delivery.timestamp_ms = one.message.timestamp_ms;
  }
  batch.memory = memory;
  return batch;
}

bool QueueSource::is_ours(const Delivery& delivery) const {
  return delivery.session == session_ || mutant(Mutant::old_session_acknowledges);
}

Status QueueSource::ack(std::span<const Delivery> done) {
  for (const Delivery& delivery : done)
    if (is_ours(delivery)) queue_->acknowledge(session_, delivery.offset);
  return {};
}

Status QueueSource::release(std::span<const Delivery> undone, std::int64_t delay_ms) {
  for (const Delivery& delivery : undone)
    if (is_ours(delivery)) queue_->release(session_, delivery.offset, delay_ms);
  return {};
}

Status QueueSource::extend(std::span<const Delivery> held) {
  for (const Delivery& delivery : held)
    if (is_ours(delivery)) queue_->extend(session_, delivery.offset);
  return {};
}

void QueueSource::disconnect() {
  if (session_ != 0) queue_->close_session(std::exchange(session_, 0));
}

}  // namespace once::testing
