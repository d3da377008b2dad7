// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/source.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace once::testing {

struct MemoryQueueOptions {
  std::int64_t lease_ms = -1;          // as in SourceTraits
  std::int64_t delay_ms_max = 0;       // as in SourceTraits
  std::size_t unacknowledged_max = 0;  // per session; 0: any number
  std::int64_t redelivery_ms_max = 86'400'000;
  // Which of so many messages is delivered next; unset: the one that was ready first.
  std::function<std::size_t(std::size_t)> pick = {};
};

// A message queue in memory, with what makes queues difficult: a message comes again after its
// lease, after a release and after the loss of its session, in any order, and tags are counted anew
// by each session. Thread-safe.
class MemoryQueue {
 public:
  explicit MemoryQueue(Clock& clock, MemoryQueueOptions options = {})
      : clock_(clock), options_(std::move(options)) {}

  void send(Message message);

  // What a consumer can see: a message is `ready` or unacknowledged, until it is acknowledged.
  std::size_t ready() const;
  std::size_t unacknowledged() const;
  // The ids of acknowledged messages, in the order of their acks.
  std::vector<std::string> acknowledged() const;
  const MemoryQueueOptions& options() const { return options_; }

  // The broker's side of a session, as the source of a consumer uses it. `session` is what
  // `open_session` has answered; of a session that is closed nothing is known any more.
  std::uint64_t open_session();
  void close_session(std::uint64_t session);  // what it has not acknowledged is ready again
  struct Delivered {
    std::int64_t tag = 0;
    std::uint32_t attempt = 1;
    Message message;
  };
  std::vector<Delivered> deliver(std::uint64_t session, std::size_t count_max);
  void acknowledge(std::uint64_t session, std::int64_t tag);
  void release(std::uint64_t session, std::int64_t tag, std::int64_t delay_ms);
  void extend(std::uint64_t session, std::int64_t tag);

 private:
  struct Entry {
    Message message;
    std::uint32_t attempt = 1;
    std::int64_t ready_ms = 0;
  };
  struct Held {
    Entry entry;
    std::int64_t lease_until_ms = 0;
  };
  struct Session {
    std::int64_t last_tag = 0;
    std::map<std::int64_t, Held> held;
  };

  std::int64_t now_ms() const { return clock_.ticks_ns() / 1'000'000; }
  Session* find(std::uint64_t session);
  std::optional<Entry> take_held(std::uint64_t session, std::int64_t tag);
  void return_expired();
  void make_ready(Entry entry, std::int64_t delay_ms);
  std::optional<Entry> next();

  Clock& clock_;
  const MemoryQueueOptions options_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<Entry> ready_;
  std::map<std::uint64_t, Session> sessions_;
  std::vector<std::string> acknowledged_;
  std::uint64_t last_session_ = 0;
};

// A consumer of a queue.
class QueueSource final : public Source, public SourceLeases {
 public:
  explicit QueueSource(std::shared_ptr<MemoryQueue> queue) : queue_(std::move(queue)) {}
  ~QueueSource() override { disconnect(); }

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;
  SourceLeases* leases() override { return queue_->options().lease_ms >= 0 ? this : nullptr; }
  Status extend(std::span<const Delivery> held) override;

  // The connection is lost; the next poll makes another one.
  void disconnect();

 private:
  // Whether it is of the session that is there now: another one counted its tags for itself.
  bool is_ours(const Delivery& delivery) const;

  const std::shared_ptr<MemoryQueue> queue_;
  bool announced_ = false;
  std::uint64_t session_ = 0;  // 0: none
};

}  // namespace once::testing
