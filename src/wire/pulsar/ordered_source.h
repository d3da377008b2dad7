// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/pulsar/client.h"
#include "wire/pulsar/consumer.h"

namespace once::pulsar {

// A topic that is read from positions in a store. Each partition is read by a consumer of its own
// that begins where `seek` says and of which the broker keeps nothing. With a subscription there is
// a second consumer, which reads nothing: it says whether the partition is ours (Failover,
// Exclusive), and its acknowledgements keep the broker from deleting what is not handled yet.
class OrderedSource final : public Source, public SourceReplay {
 public:
  static Result<std::unique_ptr<Source>> open(const Address& address);

  SourceTraits traits() const override;
  Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) override;
  Status ack(std::span<const Delivery> done) override;
  Status release(std::span<const Delivery> undone, std::int64_t delay_ms) override;
  SourceReplay* replay() override { return this; }
  Status seek(std::string_view partition, std::int64_t offset) override;
  Result<std::vector<PartitionEnd>> ends() override;

 private:
  struct Partition {
    std::string topic;
    std::unique_ptr<Consumer> claim;   // of the subscription; reads nothing
    std::unique_ptr<Consumer> reader;  // none: not sought yet, or lost
    bool is_ours = false;              // announced
    bool is_sought = false;
    std::int64_t refused = -1;      // the offset that was looked for last, and is gone
    std::int64_t next = -1;         // nothing below is delivered; -1: from the oldest message on
    std::int64_t again_until = -1;  // below this, deliveries are repetitions
    std::uint32_t attempt = 1;
    std::int64_t end = -1;  // behind the last message there was when it was asked; -1: not known
    bool at_end = false;    // everything up to `end` was delivered, and it was just asked
    std::optional<Received> front;  // an entry that is delivered in parts
    std::size_t front_index = 0;
    std::map<Place, std::int32_t> batches = {};  // delivered and not acknowledged: how many in each
    std::chrono::steady_clock::time_point ask_after = {};
  };
  struct Event {
    Batch::Event kind;
    std::string_view partition;
  };
  struct Memory;

  OrderedSource(Address address, std::vector<std::string> topics);
  Status look_after();
  Status look_after_claim(std::string_view name, Partition& partition);
  Status open_reader(std::string_view name, Partition& partition, std::int64_t offset,
                     bool may_be_behind);
  Status check_there(std::string_view name, Partition& partition, std::int64_t offset,
                     bool may_be_behind);
  bool is_covered(const Partition& partition, const Place& place) const;
  Result<std::optional<Batch>> next_batch(std::size_t count_max);
  Result<Batch> batch_of(std::string_view name, Partition& partition, std::size_t count_max);
  Status take_entry(std::string_view name, Partition& partition, std::size_t count_max,
                    Batch& batch, Memory& memory);
  Status look_for_end(Partition& partition);
  bool all_at_end() const;
  Partition* find(std::string_view name);

  Client client_;
  std::map<std::string, Partition, std::less<>> partitions_;  // their names live as long as we
  std::vector<std::string> names_;                            // in the order of their numbers
  std::deque<Event> events_;                                  // not told yet
  std::string turn_;  // the partition that was delivered from last
};

// The name of a partition for stores and people: "orders/0", "tenant/space/orders/0".
std::string partition_name(const Address& address, std::size_t number);

}  // namespace once::pulsar
