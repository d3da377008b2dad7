// SPDX-License-Identifier: Apache-2.0
#include "log/group_commit.h"

#include <algorithm>
#include <chrono>

#include "log/append_size.h"

namespace once::log {
namespace {

constexpr std::int64_t gather_ns_max = 1'000'000;
constexpr std::int64_t gather_share = 4;  // of the time a sync takes

}  // namespace

void GroupCommit::gather(Lock& lock) {
  const std::int64_t limit_ns = std::min(sync_ns_ / gather_share, gather_ns_max);
  if (staged_ >= wanted_ || limit_ns <= 0) return;
  gathered_.wait_for(lock, std::chrono::nanoseconds(limit_ns), [&] { return staged_ >= wanted_; });
}

bool GroupCommit::lead(Lock& lock) {
  if (leading_ || !partition_->has_pending()) return false;
  leading_ = true;
  gather(lock);
  const bool taken = partition_->take();
  wanted_ = staged_;
  staged_ = 0;
  if (taken) {
    lock.unlock();
    const std::int64_t begin_ns = clock_.ticks_ns();
    const Status flushed = partition_->flush();
    const std::int64_t end_ns = clock_.ticks_ns();
    lock.lock();
    sync_ns_ = end_ns - begin_ns;
    partition_->land(flushed);
  }
  leading_ = false;
  landed_.notify_all();
  return true;
}

Result<Verdict> GroupCommit::wait(Lock& lock, const Ticket& ticket) {
  if (ticket.held == 0 && !partition_->is_settled(ticket) && ++staged_ >= wanted_ && leading_)
    gathered_.notify_one();
  const std::int64_t begin_ns = clock_.ticks_ns();
  while (!partition_->is_settled(ticket)) {
    if (lead(lock)) continue;
    if (ticket.held == 0) {
      landed_.wait(lock);
      continue;
    }
    const std::int64_t waited_ms = (clock_.ticks_ns() - begin_ns) / 1'000'000;
    const auto rest =
        std::chrono::milliseconds(std::max<std::int64_t>(0, hold_ms_max_ - waited_ms));
    const bool late = landed_.wait_for(lock, rest) == std::cv_status::timeout;
    // When it was staged in the meantime, it is not given up and only has to become durable.
    if (late && !partition_->give_up(ticket) && !partition_->is_settled(ticket) && !lead(lock))
      landed_.wait(lock);
  }
  return partition_->verdict(ticket);
}

// Originals that are not remembered are looked up without the lock: appends go on meanwhile.
Result<Verdict> GroupCommit::complete(Result<Verdict> verdict) {
  if (!verdict || !verdict->needs_lookup()) return verdict;
  const End end = durable();
  ONCE_TRY(
      readers_.use(any_offset, [&](Reader& reader) { return look_up(*verdict, reader, end); }));
  const Lock lock(mutex_);
  ONCE_TRY(partition_->confirm(*verdict));
  return verdict;
}

// Each part is durable before the next is staged. What was cut off by an error is sent again with
// the rest, and known by its stamp; so a message that no append takes is found before the first.
Result<Verdict> GroupCommit::append(const Append& append) {
  const std::size_t first = count_in_one_append(append.messages);
  if (append.raw != nullptr || first == append.messages.size()) return append_part(append);
  ONCE_TRY(check_each_size(append.messages));
  Verdict verdict = ONCE_TRY(append_part({append.stamp, append.messages.first(first)}));
  for (std::size_t done = first; done < append.messages.size();) {
    const std::size_t count = count_in_one_append(append.messages.subspan(done));
    Append part{append.stamp, append.messages.subspan(done, count)};
    if (part.stamp.producer != 0) part.stamp.sequence += done;
    add_part(verdict, ONCE_TRY(append_part(part)), static_cast<std::uint32_t>(done));
    done += count;
  }
  return verdict;
}

Result<Verdict> GroupCommit::append_part(const Append& append) {
  const auto staged_and_durable = [&]() -> Result<Verdict> {
    Lock lock(mutex_);
    for (;;) {
      const auto ticket = partition_->stage(append);
      if (ticket) return wait(lock, *ticket);
      if (ticket.error().tag != "backlog") return fail(ticket.error());
      if (!lead(lock)) landed_.wait(lock);
    }
  };
  return complete(staged_and_durable());
}

Result<Stamp> GroupCommit::enter(std::string_view name) {
  Lock lock(mutex_);
  const auto ticket = ONCE_TRY(partition_->stage_entry(name));
  ONCE_TRY(wait(lock, ticket));
  return ticket.verdict.stamp;
}

End GroupCommit::durable() {
  const Lock lock(mutex_);
  return partition_->durable();
}

Result<StoredBatches> GroupCommit::locate(std::int64_t offset, std::size_t bytes_max) {
  const End end = durable();
  return readers_.use(offset,
                      [&](Reader& reader) { return reader.locate(offset, bytes_max, end); });
}

PartitionInfo GroupCommit::info() {
  Lock lock(mutex_);
  landed_.wait(lock, [&] { return !leading_; });
  return partition_->info();
}

std::uint64_t GroupCommit::next_sequence(std::string_view producer) {
  Lock lock(mutex_);
  return partition_->next_sequence(producer);
}

Result<std::optional<Message>> GroupCommit::last_message(std::string_view producer) {
  Lock lock(mutex_);
  const auto place = partition_->last_place(producer);
  const End end = partition_->durable();
  lock.unlock();
  if (!place) return std::nullopt;
  return readers_.use(any_offset, [&](Reader& reader) { return read_last(*place, reader, end); });
}

std::int64_t GroupCommit::producer_horizon_ms() {
  Lock lock(mutex_);
  return partition_->producer_horizon_ms();
}

}  // namespace once::log
