// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "wire/kafka/client.h"
#include "wire/kafka/producer_state.h"

namespace once::kafka {

// A named producer at one topic: a transactional producer of Kafka, and what it has sent to each
// partition. Every append is one Kafka transaction of the messages and the producer's state, so
// that a restart, a fatal error or a lost answer leaves no doubt: the state is read again and says
// what is there. Thread-safe.
class Voice {
 public:
  Voice(const Address& address, std::string name) : address_(address), name_(std::move(name)) {}

  // Of the producer with this name, beside the properties of its address.
  static Settings settings(const std::string& name);

  Result<Stamp> enter(std::uint32_t partition);
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages);
  // How many messages of it are there; enters nothing.
  Result<std::uint64_t> sent(std::uint32_t partition);
  // Of the last of them.
  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition);

 private:
  struct Known {
    ProducerState state;
    bool stale = false;  // the client was lost: what Kafka has must be read again
    std::chrono::steady_clock::time_point seen = {};  // when Kafka had this state
  };
  // What the delivery reports of the transaction under way say.
  struct Delivered {
    std::int64_t first_offset = -1;
    rd_kafka_resp_err_t failure = RD_KAFKA_RESP_ERR_NO_ERROR;
  };

  Status make_client();
  Status make_ready();
  Status refresh(std::uint32_t partition, Known& known);
  Status check_owner(const Known& known, const std::optional<ProducerState>& stored) const;
  Result<std::optional<ProducerState>> stored_state(std::uint32_t partition, bool stable);
  Status check_same_topic(const Known& known) const;
  Status append_new(std::uint32_t partition, Known& known, const Stamp& first,
                    std::span<const Message> messages);
  Status in_transaction(const std::function<Status()>& work);
  Status commit();
  Status abort(Error reason);
  Status abandon(Error reason);
  Status send(std::uint32_t partition, const Stamp& first, std::span<const Message> messages);
  Status send_one(std::uint32_t partition, const Stamp& stamp, const Message& message);
  Status write_state(std::uint32_t partition, const ProducerState& state);
  static void delivered(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque);

  const Address address_;
  const std::string name_;
  std::mutex mutex_;  // taken with no other lock
  std::shared_ptr<Client> client_;
  std::shared_ptr<Client> reader_;  // of the stored state; never joins its group
  bool ready_ = false;              // the client is the owner of the transactional id
  std::map<std::uint32_t, Known> partitions_;
  Delivered delivered_;  // of the transaction under way
};

}  // namespace once::kafka
