// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/pulsar/client.h"
#include "wire/pulsar/envelope.h"

namespace once::pulsar {

// An entry that came, with what the broker says about it.
struct Received {
  Place place;
  std::uint32_t redeliveries = 0;
  std::vector<std::uint64_t> left;  // of a batch: the messages to be done, as bits; none: all
  std::shared_ptr<const Entry> entry;

  bool is_left(std::size_t index) const;
};

// A consumer of one topic, or of one partition of it, under a subscription. It gets no more than it
// asks for. It is closed when it is destroyed. Used by the thread of its client.
class Consumer {
 public:
  static Result<std::unique_ptr<Consumer>> open(Client& client, Subscribe subscribe);
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // The connection is gone, or the broker has closed it: another one must be opened.
  bool is_lost() const { return is_closed_ || connection_->is_lost(); }
  // Of a subscription with one active consumer: whether that is we.
  bool is_active() const { return is_active_; }

  // Lets the broker send until so many messages are here or on their way; fewer if they are large.
  Status want(std::size_t messages);
  // What has come, in order. An entry that cannot be read is an error when it is its turn.
  bool has_some() const { return !queue_.empty() || failure_.has_value(); }
  Result<Received> take();
  std::size_t queued() const { return queued_; }

  struct Last {
    Place place;                       // of the last message; entry -1: the ledger has none
    std::optional<Place> mark_delete;  // all up to here is acknowledged
  };
  Result<Last> last();
  Status ack(std::span<const AckedEntry> entries, bool cumulative, bool confirmed);
  Status redeliver(std::span<const Place> places);

  const Subscribe& what() const { return subscribe_; }

 private:
  Consumer(std::shared_ptr<Connection> connection, Subscribe subscribe);
  Status hear(Command& command, std::string&& frame);
  Status hear_message(Command& command, std::string&& frame);

  const std::shared_ptr<Connection> connection_;
  const Subscribe subscribe_;
  std::deque<Received> queue_;
  std::optional<Error> failure_;  // of the entry behind those in the queue
  std::size_t queued_ = 0;        // messages in the queue
  std::int64_t permitted_ = 0;    // messages that the broker may still send
  std::size_t message_bytes_;     // about what a message takes
  bool is_active_ = false;
  bool is_closed_ = false;
};

// The name of a subscription of nobody else, which lives as long as its consumer.
std::string private_subscription();

}  // namespace once::pulsar
