// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/pulsar/client.h"
#include "wire/pulsar/tail.h"

namespace once::pulsar {

// A named producer at one topic. Each message is an entry of its own, with a sequence that follows
// from its stamp, so that the broker's deduplication judges each message alone: of batches it keeps
// or drops all. What the broker says about a producer is compared with what can be read in the
// topic, and a duplicate that we have not sent ourselves is the work of another process. Thread-
// safe.
class Voice {
 public:
  Voice(const Address& address, std::vector<std::string> topics, std::string name);

  Result<Stamp> enter(std::uint32_t partition);
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages);
  // How many messages of it are there, as far as that can be seen; enters nothing.
  Result<std::uint64_t> sent(std::uint32_t partition);
  // Of the last of them.
  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition);

 private:
  // One partition that was entered. Sequences are those of stamps.
  struct Known {
    std::string topic;
    std::uint64_t producer = 0;  // of stamps
    std::uint32_t epoch = 0;
    std::uint64_t confirmed = 0;  // all before it are durable
    std::uint64_t attempted = 0;  // all before it may have arrived
    Place last_place = {};        // of the last one that is durable, if that is known
    std::optional<std::uint64_t> last_digest = std::nullopt;
    std::uint64_t first_appended = 0;  // of the last append ...
    std::int64_t first_offset = -1;    // ... and where it is
    bool recognised = false;           // the broker has been seen to remember this producer

    std::shared_ptr<Connection> connection = nullptr;  // none: attach it
    std::uint64_t number = 0;                          // of the producer in its connection
    bool is_closed = false;                            // by the broker
  };
  // An append under way: what the broker answers.
  struct Flight {
    std::uint64_t next = 0;        // the sequence whose answer comes next
    std::uint64_t resent_end = 0;  // those before it were sent before: they may be duplicates
    std::uint32_t duplicates = 0;
    std::int64_t first_offset = -1;
    std::optional<Error> failure = std::nullopt;
    bool is_broken = false;  // a later message was taken after one that was not
  };

  Result<std::int64_t> attach(Known& known);
  void detach(Known& known);
  Status settle(Known& known, std::int64_t told);
  Status reattach(Known& known);
  Status check_still_there(Known& known, std::int64_t told, const std::optional<Sent>& seen) const;
  Status check_stamp(std::uint32_t partition, const Known& known, const Stamp& stamp) const;
  Status check_messages(const Known& known, const Stamp& stamp,
                        std::span<const Message> messages) const;
  Status send(Known& known, const Stamp& first, std::span<const Message> messages);
  Status push(Known& known, const Stamp& first, std::span<const Message> messages);
  Status await_answer(Known& known);
  Status hear(Known& known, const Command& command);
  void hear_receipt(Known& known, const Command& command);
  Status judge(Known& known, const Status& pushed, std::uint64_t first);
  Status prove(Known& known);
  std::string encoded(const Known& known, const Stamp& stamp, const Message& message,
                      std::string& metadata) const;
  bool is_attached(Known& known);

  const Address address_;
  const std::vector<std::string> topics_;  // of each partition
  const std::string name_;
  const std::string producer_name_;  // in Pulsar
  std::mutex mutex_;                 // taken with no other lock
  Client client_;
  std::map<std::uint32_t, Known> partitions_;
  Flight flight_;
};

}  // namespace once::pulsar
