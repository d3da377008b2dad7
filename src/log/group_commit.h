// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/message.h>
#include <once/result.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "log/partition.h"
#include "log/reader_pool.h"

namespace once::log {

// A partition for many threads. Whoever waits first writes for all: it takes what is staged, does
// one write and one sync, and wakes the others; meanwhile the next group is staged. Thread-safe.
//
// Those who were just woken usually come back with their next messages. A leader that finds fewer
// appends staged than the last group had waits for them, but no longer than a fraction of what a
// sync takes: otherwise one early thread would make everybody else wait for its small group.
class GroupCommit {
 public:
  explicit GroupCommit(std::unique_ptr<Partition> partition, Clock& clock = system_clock(),
                       std::int64_t hold_ms_max = 10'000)
      : partition_(std::move(partition)),
        clock_(clock),
        hold_ms_max_(hold_ms_max),
        readers_([this] { return partition_->make_reader(); }) {}

  // Durable when they return. Messages that are too many or too large for one group are appended in
  // several. The verdict has each message, the receipt only their sum.
  [[nodiscard]] Result<Stamp> enter(std::string_view name);
  [[nodiscard]] Result<Verdict> append(const Append& append);
  [[nodiscard]] Result<Receipt> append(const Stamp& stamp, std::span<const Message> messages) {
    return ONCE_TRY(append(Append{.stamp = stamp, .messages = messages})).receipt();
  }

  // Durable record batches as they are on disk; see Reader::locate. Reads without the lock of the
  // partition, so appends go on meanwhile.
  [[nodiscard]] Result<StoredBatches> locate(std::int64_t offset, std::size_t bytes_max);

  PartitionInfo info();
  std::int64_t producer_horizon_ms();
  std::uint64_t next_sequence(std::string_view producer);
  [[nodiscard]] Result<std::optional<Message>> last_message(std::string_view producer);
  // No other call may be under way.
  [[nodiscard]] Status close() { return partition_->close(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  Result<Verdict> append_part(const Append& append);
  // Writes the pending group; false when there is none or another thread leads.
  bool lead(Lock& lock);
  void gather(Lock& lock);
  End durable();
  Result<Verdict> wait(Lock& lock, const Ticket& ticket);
  Result<Verdict> complete(Result<Verdict> verdict);

  std::mutex mutex_;
  std::condition_variable landed_;
  std::condition_variable gathered_;
  std::unique_ptr<Partition> partition_;
  Clock& clock_;
  const std::int64_t hold_ms_max_;  // how long an append waits for its predecessors
  ReaderPool readers_;
  bool leading_ = false;
  std::size_t staged_ = 0;    // appends in the pending group
  std::size_t wanted_ = 0;    // appends in the group before it
  std::int64_t sync_ns_ = 0;  // what writing that took
};

}  // namespace once::log
