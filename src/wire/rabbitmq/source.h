// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "wire/rabbitmq/connection.h"

namespace once::rabbitmq {

// Consumes a queue. The broker remembers what is delivered and not acknowledged, as long as the
// connection lives: a session is a connection, and tags are counted anew by each. What was lost
// with a connection is delivered again by the next one, and what was handled then is known by its
// id. For the poller's thread, except `leave`.
//
// Who only looks acknowledges nothing and has everything given back when the source ends. Until
// then nobody else gets it, and it counts as delivered once more: the URL has to allow that.
class QueueSource final : public Source {
 public:
  enum class Purpose : std::uint8_t { consume, look };

  // Connects at once: what is wrong with the address is told here.
  static Result<std::unique_ptr<QueueSource>> open(Address address, Purpose purpose);
  QueueSource(const QueueSource&) = delete;
  QueueSource& operator=(const QueueSource&) = delete;
  ~QueueSource() override;

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  // Without a delay: RabbitMQ gives back at once.
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;
  void leave() override;

  // The connection is lost, as far as the broker can see.
  void cut();

 private:
  using Clock = std::chrono::steady_clock;

  QueueSource(Address address, Purpose purpose) : address_(std::move(address)), purpose_(purpose) {}

  bool looks() const { return purpose_ == Purpose::look; }
  Status connect();
  // The first message that there is, if any, comes by itself: a stream refuses to be read like
  // that.
  Result<std::optional<Arrived>> consume(Connection& connection);
  void disconnect();
  // Reads what has come, waiting for the first message; unset: nothing is wrong.
  Status receive(std::size_t count_max, std::int64_t wait_ms);
  Status take(Event event);
  Batch batch_of(std::size_t count_max);
  std::size_t room() const;  // how many more may be handed out
  Result<bool> is_empty();
  // The tags of these deliveries that are ours, of this session and not settled, in order.
  std::vector<std::uint64_t> unsettled(std::span<const Delivery> deliveries);

  const Address address_;
  const Purpose purpose_;
  std::unique_ptr<Connection> connection_;  // replaced under mutex_
  std::size_t attempts_ = 0;                // to connect
  std::uint64_t session_ = 0;
  std::deque<Arrived> arrived_;
  std::size_t arrived_bytes_ = 0;
  std::set<std::uint64_t> unacknowledged_;  // tags of this session, without those in arrived_
  bool announced_ = false;
  std::optional<Clock::time_point> asked_at_;  // whether the queue is empty ...
  int empty_answers_ = 0;                      // ... and how often in a row it was
  Clock::time_point heartbeat_at_;             // when we have proved last that we are here
  std::mutex mutex_;                           // against `leave`; taken with no other lock
  bool left_ = false;                          // guarded by mutex_
};

}  // namespace once::rabbitmq
