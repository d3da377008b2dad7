// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sink.h>

#include <memory>
#include <mutex>
#include <string>

#include "wire/mqtt/address.h"
#include "wire/mqtt/flight.h"
#include "wire/mqtt/link.h"

namespace once::mqtt {

// What a sink with this address promises.
SinkTraits sink_traits(const Address& address);

// Publishes to a topic. One append is under way at a time; as many of its messages as the broker
// allows are. Where the connection is lost it is made again, and what was not answered is sent
// again in the same session: with QoS 2 the broker then takes nothing twice.
class MqttSink final : public Sink {
 public:
  static Result<std::unique_ptr<MqttSink>> open(Address address);
  ~MqttSink() override;

  SinkTraits traits() const override;
  Result<std::uint32_t> partitions() override { return 1; }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override;

 private:
  explicit MqttSink(Address address);
  Status connect(bool goes_on);
  void notice_end();
  Status fly(Flight& flight);
  Result<bool> take_answers(Flight& flight, bool waits);
  Status reconnect(Flight& flight, Error why);

  const Address address_;
  const std::string client_;
  const Flight::Settings settings_;
  mutable std::mutex mutex_;
  std::unique_ptr<Link> link_;        // guarded by mutex_
  std::size_t packet_bytes_max_ = 0;  // guarded by mutex_: as the broker said last
};

}  // namespace once::mqtt
