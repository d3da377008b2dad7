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
  std::string name;      // for people: "file:data/orders"
  bool ordered = false;  // offsets of a partition grow and are delivered in order
  // What was delivered can be had again from a position; then `Source::replay` is there.
  bool replayable = false;
  // The longest time after which a message can come back (redelivery, retry topics, replays by
  // hand), in milliseconds; -1 when the source sets no limit.
  std::int64_t redelivery_ms_max = -1;
  std::vector<std::string> warnings = {};  // what a person should know before relying on it
  // Identifies what is read: another value under the same name is another topic. Empty: unknown.
  std::string identity = {};
  // All partitions of the topic, whoever owns them. Empty: not known.
  std::vector<std::string> partitions = {};

  // For how long a delivery is ours without an ack; after that it may be delivered again, here or
  // elsewhere. -1: for as long as its session lives. With a limit `Source::leases` is there.
  std::int64_t lease_ms = -1;
  std::int64_t delay_ms_max = 0;  // the longest delay that `release` can ask for; 0: none
  // How many deliveries may be unacknowledged at once; when so many are, polls give none. 0: any
  // number.
  std::size_t unacknowledged_max = 0;
  // Those of them from which a message can be removed while older ones stay, as by compaction. In
  // all others a message that was handled and is missing now shows that the topic is another one.
  std::vector<std::string> compacted = {};
};

struct PartitionEnd {
  std::string partition;
  std::int64_t offset = 0;  // behind the last message

  bool operator==(const PartitionEnd&) const = default;
};

// Going back to a position, for a source that is replayable.
class SourceReplay {
 public:
  virtual ~SourceReplay() = default;

  // The next poll of this partition starts at `offset`; -1 means the oldest message there is.
  // An offset the source no longer has is an error with the tag "gone": messages were lost.
  [[nodiscard]] virtual Status seek(std::string_view partition, std::int64_t offset) = 0;

  // Where the partitions of the topic end now, those of other owners included, as far as that can
  // be found out quickly. An error with the remedy `retry` says that the source is away, which a
  // poll without deliveries does not. Empty: not known.
  [[nodiscard]] virtual Result<std::vector<PartitionEnd>> ends() {
    return std::vector<PartitionEnd>();
  }
};

// Keeping deliveries for longer than `lease_ms`.
class SourceLeases {
 public:
  virtual ~SourceLeases() = default;

  // These are still being worked on: they are ours for another `lease_ms`. What is not ours any
  // more, or is of another session, is skipped.
  [[nodiscard]] virtual Status extend(std::span<const Delivery> held) = 0;
};

// Where deliveries come from. All calls come from one thread, the pipeline's poller, except
// `leave`.
//
// A source begins by announcing its partitions with `assigned` batches; if it is replayable the
// pipeline answers each with `seek` before it polls again. Work on several batches may be under way
// at once. Acks of one partition of an ordered source come in order; those of another source come
// message by message, in any order.
//
// A delivery is named by its partition, its session and its offset (or tag). An ack, a release or
// an extension of a delivery that is not ours any more does nothing, and can never mean another
// message: where tags are counted anew by each connection or channel, `Delivery::session` tells
// them apart.
class Source {
 public:
  virtual ~Source() = default;
  virtual SourceTraits traits() const = 0;

  // At most `count_max` deliveries of one partition, waiting up to `wait_ms` for the first. With 0
  // it only asks for news about partitions, and does not wait: a pipeline that is full does so, to
  // keep its place in a group.
  [[nodiscard]] virtual Result<Batch> poll(std::size_t count_max, std::int64_t wait_ms) = 0;

  // These effects are committed: the source may forget them. Only a hint for a replayable source.
  // An ordered source may take the last delivery of a partition for all before it. After an error
  // of the remedy `retry` or `recheck` the pipeline goes on: what was not heard of is delivered
  // again.
  [[nodiscard]] virtual Status ack(std::span<const Delivery> done) = 0;

  // These were not handled: the source may deliver them again, here or elsewhere, after `delay_ms`
  // as far as it can wait (`SourceTraits::delay_ms_max`).
  [[nodiscard]] virtual Status release(std::span<const Delivery> undone,
                                       std::int64_t delay_ms = 0) = 0;

  // Optional capabilities; nullptr where the source has none.
  virtual SourceReplay* replay() { return nullptr; }
  virtual SourceLeases* leases() { return nullptr; }

  // Gives up at once what is held elsewhere, such as the place in a group, for a process that has
  // to end while its poller is stuck in a store. Any thread may call it; afterwards the source can
  // only be destroyed.
  virtual void leave() {}
};

}  // namespace once
