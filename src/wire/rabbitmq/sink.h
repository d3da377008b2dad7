// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>

#include <memory>
#include <mutex>

#include "wire/rabbitmq/publisher.h"

namespace once::rabbitmq {

SinkTraits sink_traits(const Address& address);

// A queue or an exchange to publish to. Every message must be routed, and is confirmed when it is
// on disk. What is sent again is there again: RabbitMQ does not look at ids. Thread-safe.
class RabbitSink final : public Sink {
 public:
  // Connects at once: what is wrong with the address is told here.
  static Result<std::unique_ptr<RabbitSink>> open(Address address);

  SinkTraits traits() const override { return sink_traits(address_); }
  Result<std::uint32_t> partitions() override { return 1; }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override;

 private:
  explicit RabbitSink(Address address) : address_(address), publisher_(std::move(address)) {}

  Result<Receipt> receipt_of(std::span<Fate> fates) const;

  const Address address_;
  std::mutex mutex_;     // taken with no other lock
  Publisher publisher_;  // guarded by mutex_
};

}  // namespace once::rabbitmq
