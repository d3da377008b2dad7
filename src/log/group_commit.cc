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

Result<Receipt> GroupCommit::wait(Lock& lock, const Ticket& ticket) {
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
  return partition_->outcome(ticket);
}

// Each part is durable before the next is staged. What was cut off by an error is sent again with
// the rest, and known by its stamp; so a message that no append takes is found before the first.
Result<Receipt> GroupCommit::append(const Stamp& stamp, std::span<const Message> messages) {
  const std::size_t first = count_in_one_append(messages);
  if (first == messages.size()) return append_part(stamp, messages);
  ONCE_TRY(check_each_size(messages));
  Receipt receipt = ONCE_TRY(append_part(stamp, messages.first(first)));
  for (std::size_t done = first; done < messages.size();) {
    const std::size_t count = count_in_one_append(messages.subspan(done));
    Stamp next = stamp;
    if (stamp.producer != 0) next.sequence += done;
    receipt.duplicates += ONCE_TRY(append_part(next, messages.subspan(done, count))).duplicates;
    done += count;
  }
  return receipt;
}

Result<Receipt> GroupCommit::append_part(const Stamp& stamp, std::span<const Message> messages) {
  Lock lock(mutex_);
  for (;;) {
    const auto ticket = partition_->stage(stamp, messages);
    if (ticket) return wait(lock, *ticket);
    if (ticket.error().tag != "backlog") return fail(ticket.error());
    if (!lead(lock)) landed_.wait(lock);
  }
}

Result<Stamp> GroupCommit::enter(std::string_view name) {
  Lock lock(mutex_);
  const auto ticket = ONCE_TRY(partition_->stage_entry(name));
  ONCE_TRY(wait(lock, ticket));
  return ticket.stamp;
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
  landed_.wait(lock, [&] { return !leading_; });
  return partition_->last_message(producer);
}

std::int64_t GroupCommit::producer_horizon_ms() {
  Lock lock(mutex_);
  return partition_->producer_horizon_ms();
}

}  // namespace once::log
