// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

struct SourceTraits {
  std::string name;         // for people: "file:data/orders"
  bool ordered = false;     // offsets of a partition grow and are delivered in order
  bool replayable = false;  // `seek` works: what was delivered can be had again
  // The longest time after which a message can come back (redelivery, retry topics, replays by
  // hand), in milliseconds; -1 when the source sets no limit.
  std::int64_t redelivery_ms_max = -1;
  std::vector<std::string> warnings = {};  // what a person should know before relying on it
  // Identifies what is read: another value under the same name is another topic. Empty: unknown.
  std::string identity = {};
  // All partitions of the topic, whoever owns them. Empty: not known.
  std::vector<std::string> partitions = {};
  // Those of them from which a message can be removed while older ones stay, as by compaction. In
  // all others a message that was handled and is missing now shows that the topic is another one.
  std::vector<std::string> compacted = {};
};

struct PartitionEnd {
  std::string partition;
  std::int64_t offset = 0;  // behind the last message

  bool operator==(const PartitionEnd&) const = default;
};

// Where deliveries come from. All calls come from one thread, the pipeline's poller.
//
// A source begins by announcing its partitions with `assigned` batches; the pipeline answers each
// with `seek` (if the source is replayable) before it polls again. Work on several batches may be
// under way at once; acks of one partition come in order.
class Source {
 public:
  virtual ~Source() = default;
  virtual SourceTraits traits() const = 0;

  // At most `count_max` deliveries of one partition, waiting up to `wait_ms` for the first. With 0
  // it only asks for news about partitions, and does not wait: a pipeline that is full does so, to
  // keep its place in a group.
  [[nodiscard]] virtual Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) = 0;

  // These effects are committed: the source may forget them. Only a hint for a replayable source.
  // An ordered source may take the last delivery of a partition for all before it.
  [[nodiscard]] virtual Status ack(std::span<const Delivery> done) = 0;

  // These were not handled: the source may deliver them again, here or elsewhere.
  [[nodiscard]] virtual Status release(std::span<const Delivery> undone) = 0;

  // The next poll of this partition starts at `offset`; -1 means the oldest message there is.
  // An offset the source no longer has is an error with the tag "gone": messages were lost.
  [[nodiscard]] virtual Status seek(std::string_view partition, std::int64_t offset) = 0;

  // Where the partitions of the topic end now, those of other owners included, as far as that can
  // be found out quickly. An error with the remedy `retry` says that the source is away, which a
  // poll without deliveries does not. Empty: not known.
  [[nodiscard]] virtual Result<std::vector<PartitionEnd>> ends() {
    return std::vector<PartitionEnd>();
  }

  // Gives up at once what is held elsewhere, such as the place in a group, for a process that has
  // to end while its poller is stuck in a store. Any thread may call it; afterwards the source can
  // only be destroyed.
  virtual void leave() {}
};

}  // namespace once
