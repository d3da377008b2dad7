// SPDX-License-Identifier: Apache-2.0
#include "log/group_commit.h"

#include <algorithm>
#include <chrono>

#include "base/assert.h"
#include "base/mutant.h"
#include "log/append_size.h"

namespace once::log {
namespace {

constexpr std::int64_t gather_ns_max = 1'000'000;
constexpr std::int64_t gather_share = 4;  // of the time a sync takes

}  // namespace

// Keeps tasks that come too late from an object that is gone, and the object until they are done.
class GroupCommit::Gate {
 public:
  void pass(const Task& task) {
    {
      const std::lock_guard lock(mutex_);
      if (is_closed_) return;
      ++inside_;
    }
    const Leave leave{*this};
    task();
  }
  void close() {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  struct Leave {
    Gate& gate;
    ~Leave() {
      const std::lock_guard lock(gate.mutex_);
      if (--gate.inside_ == 0) gate.left_.notify_all();
    }
  };

  std::mutex mutex_;
  std::condition_variable left_;
  bool is_closed_ = false;
  int inside_ = 0;
};

GroupCommit::GroupCommit(std::unique_ptr<Partition> partition, Clock& clock,
                         std::int64_t hold_ms_max, Executor* executor)
    : partition_(std::move(partition)),
      clock_(clock),
      hold_ms_max_(hold_ms_max),
      executor_(executor),
      gate_(std::make_shared<Gate>()),
      readers_([this] { return partition_->make_reader(); }) {}

GroupCommit::~GroupCommit() {
  gate_->close();
  const auto closed = [](Remedy remedy) {
    return fail(remedy, "closed", "the log was closed before this was answered");
  };
  for (const auto& waiter : waiters_) answer(*waiter, closed(Remedy::recheck));
  for (auto& [offset, subscription] : subscriptions_)
    calls_.push_back(
        [wakeup = std::move(subscription.wakeup), error = closed(Remedy::stop)] { wakeup(error); });
  call_what_is_left();
}

// --- writing

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
    const std::int64_t begin_ns = clock_.ticks_ns();
    const Status flushed = flush(lock);
    sync_ns_ = clock_.ticks_ns() - begin_ns;
    partition_->land(flushed);
  }
  leading_ = false;
  std::erase_if(waiters_, [&](const auto& waiter) { return settle(*waiter); });
  wake_readers();
  landed_.notify_all();
  schedule();
  return true;
}

// Without the lock. A simulated process that dies in it can never be closed.
Status GroupCommit::flush(Lock& lock) {
  struct Flushing {
    GroupCommit& commit;
    Lock& lock;
    bool has_returned = false;
    ~Flushing() {
      lock.lock();
      commit.is_abandoned_ = !has_returned;
    }
  };
  lock.unlock();
  Flushing flushing{*this, lock};
  Status flushed = partition_->flush();
  flushing.has_returned = true;
  return flushed;
}

// Has somebody write and call, if there is anything to write or to call. Needs the lock.
void GroupCommit::schedule() {
  const bool is_idle = calls_.empty() && (leading_ || !partition_->has_pending());
  if (executor_ == nullptr || is_scheduled_ || is_idle) return;
  is_scheduled_ = true;
  post_guarded(0, [this] { work(); });
}

// One round, so that other partitions have their turn.
void GroupCommit::work() {
  Lock lock(mutex_);
  (void)lead(lock);
  std::vector<Task> calls;
  calls.swap(calls_);
  lock.unlock();
  for (const Task& call : calls) call();
  lock.lock();
  is_scheduled_ = false;
  schedule();
}

void GroupCommit::post_guarded(std::int64_t ticks_ns, Task task) {
  Task guarded = [gate = gate_, task = std::move(task)] { gate->pass(task); };
  if (ticks_ns == 0)
    executor_->post(std::move(guarded));
  else
    executor_->post_at(ticks_ns, std::move(guarded));
}

// --- waiting for appends

void GroupCommit::add(std::shared_ptr<Waiter> waiter) {
  const bool is_held = waiter->ticket.held != 0;
  if (settle(*waiter)) return schedule();
  if (mutant(Mutant::completion_before_durability) && waiter->done) {
    answer(*waiter, waiter->ticket.verdict);
    return schedule();
  }
  if (is_held) {
    waiter->late_ns = clock_.ticks_ns() + hold_ms_max_ * 1'000'000;
    if (waiter->done) post_guarded(waiter->late_ns, [this] { give_up_late(); });
  } else if (++staged_ >= wanted_ && leading_) {
    gathered_.notify_one();
  }
  waiters_.push_back(std::move(waiter));
  schedule();
}

bool GroupCommit::settle(Waiter& waiter) {
  if (!partition_->is_settled(waiter.ticket)) return false;
  answer(waiter, partition_->verdict(waiter.ticket));
  return true;
}

void GroupCommit::answer(Waiter& waiter, Result<Verdict> verdict) {
  if (waiter.done)
    calls_.push_back([this, done = std::move(waiter.done), verdict = std::move(verdict)] {
      finish(done, verdict);
    });
  else
    waiter.answer = std::move(verdict);
}

// What was staged in the meantime only has to become durable.
void GroupCommit::give_up_late() {
  const Lock lock(mutex_);
  give_up_late_locked();
  landed_.notify_all();
  schedule();
}

void GroupCommit::give_up_late_locked() {
  const std::int64_t now_ns = clock_.ticks_ns();
  std::erase_if(waiters_, [&](const auto& waiter) {
    if (waiter->late_ns < 0 || waiter->late_ns > now_ns) return false;
    waiter->late_ns = -1;
    if (!partition_->give_up(waiter->ticket)) return false;
    answer(*waiter, fail(partition_->too_late(waiter->ticket)));
    return true;
  });
}

Result<Verdict> GroupCommit::wait(Lock& lock, const Ticket& ticket) {
  const auto waiter = std::make_shared<Waiter>(Waiter{.ticket = ticket});
  add(waiter);
  while (!waiter->answer) {
    if (lead(lock)) continue;
    if (waiter->late_ns < 0) {
      landed_.wait(lock);
      continue;
    }
    const std::int64_t rest_ns = std::max<std::int64_t>(0, waiter->late_ns - clock_.ticks_ns());
    if (landed_.wait_for(lock, std::chrono::nanoseconds(rest_ns)) == std::cv_status::timeout)
      give_up_late_locked();
  }
  return *std::move(waiter->answer);
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

// A lookup may take long, so it does not hold up the completions behind it.
void GroupCommit::finish(const Completion& done, const Result<Verdict>& verdict) {
  if (!verdict || !verdict->needs_lookup()) return done(verdict);
  const Lock lock(mutex_);
  const std::uint64_t number = number_next_++;
  lookups_.emplace(number, Lookup{done, *verdict});
  post_guarded(0, [this, number] { finish_lookup(number); });
}

void GroupCommit::finish_lookup(std::uint64_t number) {
  Lock lock(mutex_);
  const auto found = lookups_.find(number);
  if (found == lookups_.end()) return;  // it was left, and called by `close`
  const Lookup lookup = std::move(found->second);
  lookups_.erase(found);
  lock.unlock();
  lookup.done(complete(lookup.verdict));
}

void GroupCommit::call_what_is_left() {
  std::vector<Task> calls;
  {
    const Lock lock(mutex_);
    calls.swap(calls_);
  }
  for (const Task& call : calls) call();
  std::vector<std::uint64_t> numbers;
  {
    const Lock lock(mutex_);
    for (const auto& [number, lookup] : lookups_) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) finish_lookup(number);
}

// Each part is durable before the next is staged. What was cut off by an error is sent again with
// the rest, and known by its stamp; so a message that no append takes is found before the first.
Result<Verdict> GroupCommit::append(const Append& append) {
  const std::size_t first = count_in_one_append(append.messages);
  if (append.raw != nullptr || first == append.messages.size()) return append_part(append);
  (void)ONCE_TRY(weigh(append.messages));
  Verdict verdict = ONCE_TRY(append_part({append.stamp, append.messages.first(first)}));
  for (std::size_t done = first; done < append.messages.size();) {
    const std::size_t count = count_in_one_append(append.messages.subspan(done));
    Append part{append.stamp, append.messages.subspan(done, count)};
    if (part.stamp.producer != 0) part.stamp.sequence += done;
    auto appended = append_part(part);
    if (!appended) {  // `retry` would say that nothing was appended
      Error error = std::move(appended).error();
      if (error.remedy == Remedy::retry) error.remedy = Remedy::recheck;
      return fail(std::move(error));
    }
    add_part(verdict, std::move(*appended), static_cast<std::uint32_t>(done));
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

void GroupCommit::append(const Append& append, Completion done) {
  ONCE_ASSERT(executor_ != nullptr);
  const Lock lock(mutex_);
  auto waiter = std::make_shared<Waiter>();
  waiter->done = std::move(done);
  auto ticket = partition_->stage(append);
  if (!ticket) {
    answer(*waiter, fail(std::move(ticket).error()));
    return schedule();
  }
  waiter->ticket = *std::move(ticket);
  add(std::move(waiter));
}

Result<Stamp> GroupCommit::enter(std::string_view name, const Identity& wanted) {
  Lock lock(mutex_);
  const auto ticket = ONCE_TRY(partition_->stage_entry(name, wanted));
  ONCE_TRY(wait(lock, ticket));
  return ticket.verdict.stamp;
}

// --- readers

End GroupCommit::durable() {
  const Lock lock(mutex_);
  return partition_->durable();
}

Result<StoredBatches> GroupCommit::locate(std::int64_t offset, std::size_t bytes_max) {
  const End end = durable();
  return readers_.use(offset,
                      [&](Reader& reader) { return reader.locate(offset, bytes_max, end); });
}

Result<std::int64_t> GroupCommit::wait_beyond(std::int64_t offset, std::int64_t wait_ms) {
  Lock lock(mutex_);
  landed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                   [&] { return partition_->end_offset() > offset || partition_->is_poisoned(); });
  if (partition_->end_offset() <= offset && partition_->is_poisoned())
    return fail(partition_->poisoned(Remedy::stop));
  return partition_->end_offset();
}

std::uint64_t GroupCommit::subscribe(std::int64_t offset, Wakeup wakeup) {
  ONCE_ASSERT(executor_ != nullptr);
  const Lock lock(mutex_);
  const std::uint64_t number = number_next_++;
  subscribed_[number] = subscriptions_.emplace(offset, Subscription{number, std::move(wakeup)});
  // It may have become durable since the reader looked.
  if (!mutant(Mutant::wakeup_lost)) wake_readers();
  schedule();
  return number;
}

bool GroupCommit::unsubscribe(std::uint64_t number) {
  const Lock lock(mutex_);
  const auto found = subscribed_.find(number);
  if (found == subscribed_.end()) return false;
  subscriptions_.erase(found->second);
  subscribed_.erase(found);
  return true;
}

// Those whose offset the durable end has passed; all, when it never will.
void GroupCommit::wake_readers() {
  const std::int64_t end = partition_->end_offset();
  while (!subscriptions_.empty()) {
    const auto first = subscriptions_.begin();
    if (first->first >= end && !partition_->is_poisoned()) return;
    Result<std::int64_t> news = end;
    if (first->first >= end) news = fail(partition_->poisoned(Remedy::stop));
    calls_.push_back([wakeup = std::move(first->second.wakeup), news] { wakeup(news); });
    subscribed_.erase(first->second.number);
    subscriptions_.erase(first);
  }
}

// --- the rest

Identity GroupCommit::identity_of(std::string_view producer) {
  const Lock lock(mutex_);
  return partition_->identity_of(producer);
}

bool GroupCommit::knows(std::uint64_t producer) {
  const Lock lock(mutex_);
  return partition_->knows(producer);
}

std::map<std::string, std::uint64_t, std::less<>> GroupCommit::producers() {
  const Lock lock(mutex_);
  return partition_->durable_producers().names();
}

PartitionInfo GroupCommit::info() {
  Lock lock(mutex_);
  landed_.wait(lock, [&] { return !leading_; });
  return partition_->info();
}

bool GroupCommit::is_poisoned() {
  const Lock lock(mutex_);
  return partition_->is_poisoned();
}

std::uint64_t GroupCommit::next_sequence(std::string_view producer) {
  const Lock lock(mutex_);
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
  const Lock lock(mutex_);
  return partition_->producer_horizon_ms();
}

Status GroupCommit::close() {
  Status closed;
  {
    Lock lock(mutex_);
    if (is_abandoned_) return fail(Remedy::recheck, "closed", "it ended while it was written");
    while (leading_ || partition_->has_pending())
      if (!lead(lock)) landed_.wait(lock);
    closed = partition_->close();
  }
  call_what_is_left();
  return closed;
}

}  // namespace once::log
