// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/message.h>
#include <once/result.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "log/executor.h"
#include "log/partition.h"
#include "log/reader_pool.h"

namespace once::log {

// What became of an append; called once.
using Completion = std::function<void(Result<Verdict>)>;
// The durable end, when it has passed the offset that was waited for; called once.
using Wakeup = std::function<void(Result<std::int64_t>)>;

// A partition for many threads. An append waits in a list until its group is durable, either with
// the thread that called or with a completion. Whoever waits first writes for all: it takes what is
// staged, does one write and one sync, and settles the list; meanwhile the next group is staged.
// Where no thread waits, a task of the executor writes. Thread-safe.
//
// Those who were just woken usually come back with their next messages. A leader that finds fewer
// appends staged than the last group had waits for them, but no longer than a fraction of what a
// sync takes: otherwise one early thread would make everybody else wait for its small group.
//
// Completions and wake-ups are called on the executor with no lock held, those of one partition one
// after the other; only a completion whose original has to be looked up may be late. `close` and
// the destructor call what is left. They may call anything here but those two, and must not append
// once the destructor has begun. The executor outlives this.
class GroupCommit {
 public:
  // Without an executor there are only the calls that wait.
  explicit GroupCommit(std::unique_ptr<Partition> partition, Clock& clock = system_clock(),
                       std::int64_t hold_ms_max = 10'000, Executor* executor = nullptr);
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;
  ~GroupCommit();

  // Durable when they return. Messages that are too many or too large for one group are appended in
  // several. The verdict has each message, the receipt only their sum.
  [[nodiscard]] Result<Stamp> enter(std::string_view name, const Identity& wanted = {});
  [[nodiscard]] Result<Verdict> append(const Append& append);
  [[nodiscard]] Result<Receipt> append(const Stamp& stamp, std::span<const Message> messages) {
    return ONCE_TRY(append(Append{.stamp = stamp, .messages = messages})).receipt();
  }

  // Returns at once; `done` is called when the append is durable or has failed, with "backlog"
  // (retry) when too much is waiting. What `append` refers to is not needed any more.
  void append(const Append& append, Completion done);

  // Waits until the durable end is beyond `offset`, or the time is over; answers the durable end.
  [[nodiscard]] Result<std::int64_t> wait_beyond(std::int64_t offset, std::int64_t wait_ms);
  // The same without a thread. The number is for `unsubscribe`, which answers whether `wakeup` will
  // never be called: otherwise it was or is just being called.
  [[nodiscard]] std::uint64_t subscribe(std::int64_t offset, Wakeup wakeup);
  bool unsubscribe(std::uint64_t number);

  // Durable record batches as they are on disk; see Reader::locate. Reads without the lock of the
  // partition, so appends go on meanwhile.
  [[nodiscard]] Result<StoredBatches> locate(std::int64_t offset, std::size_t bytes_max);

  // As in Partition; producers that are staged count.
  Identity identity_of(std::string_view producer);
  bool knows(std::uint64_t producer);
  // The id of each name.
  std::map<std::string, std::uint64_t, std::less<>> producers();

  PartitionInfo info();
  bool is_poisoned();
  std::int64_t producer_horizon_ms();
  std::uint64_t next_sequence(std::string_view producer);
  [[nodiscard]] Result<std::optional<Message>> last_message(std::string_view producer);
  // Writes what is staged and calls what waits. No other call may be under way.
  [[nodiscard]] Status close();

 private:
  using Lock = std::unique_lock<std::mutex>;
  class Gate;
  // An append that is not settled yet.
  struct Waiter {
    Ticket ticket;
    Completion done = {};       // empty: a thread waits for `answer`
    std::int64_t late_ns = -1;  // when it is given up, if it is held
    std::optional<Result<Verdict>> answer = std::nullopt;
  };
  struct Subscription {
    std::uint64_t number = 0;
    Wakeup wakeup;
  };
  struct Lookup {
    Completion done;
    Verdict verdict;
  };
  using Subscriptions = std::multimap<std::int64_t, Subscription>;  // by offset

  Result<Verdict> append_part(const Append& append);
  // Writes the pending group; false when there is none or another thread leads.
  bool lead(Lock& lock);
  void gather(Lock& lock);
  Status flush(Lock& lock);
  End durable();
  void add(std::shared_ptr<Waiter> waiter);
  void answer(Waiter& waiter, Result<Verdict> verdict);
  bool settle(Waiter& waiter);
  void give_up_late();
  void give_up_late_locked();
  void wake_readers();
  Result<Verdict> wait(Lock& lock, const Ticket& ticket);
  Result<Verdict> complete(Result<Verdict> verdict);
  void finish(const Completion& done, const Result<Verdict>& verdict);
  void finish_lookup(std::uint64_t number);
  void call_what_is_left();

  void schedule();
  void work();
  void post_guarded(std::int64_t ticks_ns, Task task);

  std::mutex mutex_;
  std::condition_variable landed_;
  std::condition_variable gathered_;
  std::unique_ptr<Partition> partition_;
  Clock& clock_;
  const std::int64_t hold_ms_max_;  // how long an append waits for its predecessors
  Executor* const executor_;
  const std::shared_ptr<Gate> gate_;
  ReaderPool readers_;
  bool leading_ = false;
  bool is_abandoned_ = false;
  std::size_t staged_ = 0;    // appends in the pending group
  std::size_t wanted_ = 0;    // appends in the group before it
  std::int64_t sync_ns_ = 0;  // what writing that took

  std::vector<std::shared_ptr<Waiter>> waiters_;  // in the order of staging
  Subscriptions subscriptions_;
  std::map<std::uint64_t, Subscriptions::iterator> subscribed_;  // by number
  std::map<std::uint64_t, Lookup> lookups_;
  std::uint64_t number_next_ = 1;  // of subscriptions and lookups
  std::vector<Task> calls_;        // of completions and wake-ups, to be made without the lock
  bool is_scheduled_ = false;      // a task for `work` was posted and has not ended
};

}  // namespace once::log
