// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "log/partition.h"

namespace once::log {

// A partition for many threads. Whoever waits first writes for all: it takes what is staged, does
// one write and one sync, and wakes the others; meanwhile the next group is staged. Thread-safe.
class GroupCommit {
 public:
  explicit GroupCommit(std::unique_ptr<Partition> partition, std::int64_t hold_ms_max = 10'000)
      : partition_(std::move(partition)), hold_ms_max_(hold_ms_max) {}

  // Durable when they return.
  [[nodiscard]] Result<Stamp> enter(std::string_view name);
  [[nodiscard]] Result<Receipt> append(const Stamp& stamp, std::span<const Message> messages);

  PartitionInfo info();
  // No other call may be under way.
  [[nodiscard]] Status close() { return partition_->close(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Writes the pending group; false when there is none or another thread is writing.
  bool lead(Lock& lock);
  Result<Receipt> wait(Lock& lock, const Ticket& ticket);

  std::mutex mutex_;
  std::condition_variable landed_;
  std::unique_ptr<Partition> partition_;
  const std::int64_t hold_ms_max_;  // how long an append waits for its predecessors
};

}  // namespace once::log
