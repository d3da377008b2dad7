// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/rabbitmq/connection.h"

namespace once::rabbitmq {

// What has become of a message that was to be published.
struct Fate {
  enum class Kind : std::uint8_t {
    unsent,    // it was not sent, or the broker has not taken it and said so
    unknown,   // it was sent, and nothing was heard of it
    accepted,  // it is there, on disk where its queue is durable
    refused,   // it is not there, and will never be: `why`
  };
  Kind kind = Kind::unsent;
  std::optional<Error> why = std::nullopt;  // of a message that is not accepted
};

// A connection on which publishes are confirmed. For one thread at a time.
class Publisher {
 public:
  explicit Publisher(Address address) : address_(std::move(address)) {}

  // Connects if there is no connection that works, and finds out whether the broker takes messages
  // at the moment. After an error nothing was sent.
  Status be_ready();
  // Publishes those messages whose fate is `unsent`, and waits for what the broker says.
  void publish(std::span<const Message> messages, std::span<Fate> fates);

 private:
  Status connect();
  Status wait_for_earlier();
  std::size_t window_of(std::span<const Message> messages, std::span<const Fate> fates,
                        std::size_t from) const;
  // Whether the connection is still good for more.
  bool publish_window(std::span<const Message> messages, std::span<Fate> fates);
  Status send(const Message& message, std::size_t index, std::span<Fate> fates);
  Status wait_for_all(std::span<const Message> messages, std::span<Fate> fates);
  void take(const Confirmed& confirmed, std::span<Fate> fates);
  void take(const Returned& returned, std::span<const Message> messages, std::span<Fate> fates);

  const Address address_;
  std::unique_ptr<Connection> connection_;
  std::size_t attempts_ = 0;                          // to connect
  std::uint64_t published_ = 0;                       // on this connection
  std::map<std::uint64_t, std::size_t> unconfirmed_;  // publishes, with the indexes of messages
  bool stalled_ = false;  // those are of an earlier call, which has given up
};

}  // namespace once::rabbitmq
