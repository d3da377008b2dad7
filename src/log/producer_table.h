// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>
#include <once/message.h>
#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/bytes.h"
#include "log/interval_set.h"

namespace once::log {

// What the table says about messages before anything is done about them.
struct Check {
  enum class Kind : std::uint8_t {
    fresh,      // none was appended before
    duplicate,  // all were
    mixed,      // some were: `fresh` has the others
    gap,        // predecessors are missing, and the policy wants them first
    fenced,     // a later epoch has entered
    unknown,    // this producer or this epoch never entered here
    limit,      // the producer has too many holes
  };
  Kind kind = Kind::fresh;
  std::vector<Interval> fresh;      // only for `mixed`
  std::uint32_t duplicates = 0;     // how many of the messages were appended before
  std::uint64_t next_sequence = 0;  // the first one that is missing, for the text of a gap
  std::uint32_t epoch = 0;          // the present one, for the text of a fence
};

// Messages that are neighbours both in sequence and in offset.
struct Placed {
  Interval sequences;
  std::int64_t offset = 0;  // of the first
};

// Who a producer is. Epochs are those of Stamp.
struct Identity {
  std::uint64_t id = 0;  // 0: not known, or to be drawn
  std::uint32_t epoch = 0;

  bool operator==(const Identity&) const = default;
};

// Which messages of which producer a partition has. It is a pure function of the log: `apply` is
// the same for live traffic and recovery, and a snapshot only stands for the frames before it.
// Sequences are kept as intervals and compared across epochs; an epoch only fences smaller ones.
//
// A producer may be forgotten once retention has deleted all that it sent. The horizon remembers
// until when that can have happened: who is not known behind a horizon may be new, or too old to be
// told from new. Not thread-safe; owned by a Partition.
class ProducerTable {
 public:
  // Never changes anything. `count` > 0, and the last sequence fits into 64 bits.
  Check check(const Stamp& stamp, std::uint32_t count, GapPolicy gaps) const;

  // Whether all of these messages were appended.
  bool has_all(std::uint64_t producer, std::uint64_t sequence, std::uint32_t count) const;

  // Where messages that were appended before are, as far as that is remembered; by sequence.
  std::vector<Placed> places_of(std::uint64_t producer, Interval sequences) const;

  // The stamp that `name` gets when it enters now: with the id that is wanted if it is new here,
  // and an epoch that is no smaller. `random` draws the id of a new producer that wants none.
  Result<Stamp> next_entry(std::string_view name, const std::function<std::uint64_t()>& random,
                           const Identity& wanted = {}) const;

  // The stamp of a record batch that has only the low 15 bits of the epoch and 31 of the sequence,
  // and whose sequences begin at 0 in each epoch, as those of Kafka's producers do. In our stamps
  // they go on: the first of an epoch is behind all before it. Of all numbers that end in the same
  // bits the one nearest to what the table has is meant.
  Stamp widened(std::uint64_t producer, std::uint16_t epoch, std::uint32_t sequence) const;

  // The sequence behind the largest one of this producer; 0: it is not known.
  std::uint64_t next_sequence(std::string_view name) const;

  // The id and the present epoch of this producer; id 0: it is not known.
  Identity identity_of(std::string_view name) const;
  // The id of each name.
  const std::map<std::string, std::uint64_t, std::less<>>& names() const { return ids_; }

  // These change the table. False: the log contradicts itself, which a correct one never does.
  [[nodiscard]] bool apply(const Stamp& stamp, std::uint32_t count, std::int64_t base_offset);
  [[nodiscard]] bool apply_entry(std::string_view name, std::uint64_t producer, std::uint32_t epoch,
                                 std::int64_t base_offset);

  // A segment begins at this time: whoever did something since the last one was last seen now.
  void begin_segment(std::int64_t now_ms);
  // Producers of which everything lies below `first_offset` and that were last seen before a time.
  std::vector<std::uint64_t> expired(std::int64_t first_offset, std::int64_t before_ms) const;
  void forget(std::span<const std::uint64_t> producers);
  // No producer that was last seen after this time was ever forgotten; 0: none was.
  std::int64_t horizon_ms() const { return horizon_ms_; }
  // Producers that were last seen before this time may be missing for a reason outside the table.
  void set_horizon(std::int64_t time_ms) { horizon_ms_ = time_ms; }

  // The body of a snapshot frame at this offset, of either version; ours is the newest.
  void encode(Buffer& into) const;
  static Result<ProducerTable> decode(std::string_view bytes, std::uint8_t version,
                                      std::int64_t base_offset);

  bool knows(std::uint64_t producer) const { return producers_.contains(producer); }
  std::size_t size() const { return producers_.size(); }
  // Whether it can follow on `before`: both know the same, but for producers behind the horizon.
  // What they remember of offsets is only a cache and not compared.
  bool continues(const ProducerTable& before) const;

 private:
  struct Producer {
    std::string name;
    std::uint32_t epoch = 0;
    std::uint64_t epoch_begin = 0;  // the sequence behind all that came before this epoch
    IntervalSet seen;
    bool active = true;           // since the segment began
    std::int64_t last_ms = 0;     // when it was last seen, if not active
    std::int64_t end_offset = 0;  // everything it did is below this
    std::vector<Placed> ranges;   // a ring once it is full
    std::size_t newest = 0;

    void remember(const Placed& range);
  };

  // Ordered, so that a snapshot of the same table always has the same bytes.
  std::map<std::uint64_t, Producer> producers_;
  std::map<std::string, std::uint64_t, std::less<>> ids_;
  std::size_t interval_count_ = 0;
  std::int64_t horizon_ms_ = 0;
};

}  // namespace once::log
