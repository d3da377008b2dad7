// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wire/pulsar/client.h"
#include "wire/pulsar/consumer.h"

namespace once::pulsar {

// A subscription that is shared (Shared, Key_Shared): a queue. A delivery is named by its session,
// which is the connection of its consumer, and a tag. The broker knows entries: one that is a batch
// is acknowledged message by message as far as the broker can, and given back when none of its
// messages is out; those that were done are left out when it comes again.
class QueueSource final : public Source {
 public:
  static Result<std::unique_ptr<Source>> open(const Address& address);
  ~QueueSource() override;

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;

  // As if the network had cut them; for tests.
  void cut_connections() { client_.cut_connections(); }

 private:
  enum class State : std::uint8_t { here, out, done, returned };
  // An entry that is ours.
  struct Held {
    Place place;
    std::shared_ptr<const Entry> entry;
    std::uint32_t attempt = 1;
    std::vector<State> states;                       // of its messages
    std::size_t open = 0;                            // messages that are here or out
    std::chrono::steady_clock::time_point due = {};  // when it may be given back
  };
  // What was seen of an entry in an earlier session or delivery.
  struct Seen {
    std::uint32_t attempt = 0;
    std::vector<bool> done;
  };
  struct Partition {
    std::string topic;
    std::unique_ptr<Consumer> consumer;
    std::uint64_t session = 0;
    std::map<Place, Held> held;         // by entry
    std::map<std::int64_t, Place> out;  // by tag
    std::deque<Place> ready;            // messages to be delivered
    std::map<Place, Seen> seen;         // entries that come again
    std::multimap<std::chrono::steady_clock::time_point, Place> returning;
    std::chrono::steady_clock::time_point ask_after = {};
    bool is_announced = false;
  };

  QueueSource(Address address, std::vector<std::string> topics);
  Status look_after(std::size_t count_max);
  Status connect(Partition& partition);
  void lose(Partition& partition);
  Status take_in(Partition& partition, std::size_t count_max);
  void take_in(Partition& partition, Received received);
  Status give_back_due(Partition& partition);
  Status give_back(Partition& partition, const Place& place);
  Batch deliver(const std::string& name, Partition& partition, std::size_t count_max);
  Status ack_in(Partition& partition, std::span<const Delivery* const> done);
  // Ends what a delivery was: nothing if it is not ours any more.
  Held* settle(Partition& partition, const Delivery& delivery, State state);
  static AckedEntry acked(const Held& held);
  std::size_t held_messages(const Partition& partition) const;

  Client client_;
  std::map<std::string, Partition, std::less<>> partitions_;  // their names live as long as we
  std::string turn_;                                          // delivered from last
  std::int64_t last_tag_ = 0;
  std::uint64_t last_session_ = 0;
};

}  // namespace once::pulsar
