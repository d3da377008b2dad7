// SPDX-License-Identifier: Apache-2.0
#include "log/group_commit.h"

#include <chrono>

namespace once::log {

bool GroupCommit::lead(Lock& lock) {
  if (!partition_->take()) return false;
  lock.unlock();
  const Status flushed = partition_->flush();
  lock.lock();
  partition_->land(flushed);
  landed_.notify_all();
  return true;
}

Result<Receipt> GroupCommit::wait(Lock& lock, const Ticket& ticket) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(hold_ms_max_);
  while (!partition_->is_settled(ticket)) {
    if (lead(lock)) continue;
    if (ticket.held == 0) {
      landed_.wait(lock);
    } else if (landed_.wait_until(lock, limit) == std::cv_status::timeout) {
      // When it was staged in the meantime, it only has to become durable.
      (void)partition_->give_up(ticket);
      if (!partition_->is_settled(ticket) && !lead(lock)) landed_.wait(lock);
    }
  }
  return partition_->outcome(ticket);
}

Result<Receipt> GroupCommit::append(const Stamp& stamp, std::span<const Message> messages) {
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
  landed_.wait(lock, [&] { return !partition_->is_writing(); });
  return partition_->info();
}

}  // namespace once::log
