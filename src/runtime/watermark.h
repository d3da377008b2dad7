// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace once {

// The position and the progress of a partition whose messages are settled out of order: everything
// below the position is settled. Memory in proportion to what is under way. Used by one thread.
class Watermark {
 public:
  // What names a message of the partition. Of an ordered source the session is always 0.
  struct Tag {
    std::uint64_t session = 0;
    std::int64_t offset = 0;

    auto operator<=>(const Tag&) const = default;
  };

  // A delivery is under way; `end_offset` is the position once it and all before it are settled.
  // Its birth is not known yet: until it is, the progress goes no further than it is now.
  void started(const Tag& tag, const Witness& witness, std::int64_t end_offset) {
    const bool fresh = under_way_
                           .try_emplace(tag, Entry{.end_offset = end_offset,
                                                   .floor_ms = settled_ms_,
                                                   .born_ms = -1,
                                                   .witness = witness,
                                                   .settled = false})
                           .second;
    if (fresh) ++floors_[settled_ms_];
  }

  // Its birth, as far as it is believed; -1: it does not count.
  void identified(const Tag& tag, std::int64_t born_ms) {
    const auto found = under_way_.find(tag);
    if (found == under_way_.end() || !found->second.floor_ms || found->second.settled) return;
    forget_floor(found->second);
    found->second.born_ms = born_ms;
    if (born_ms >= 0) waiting_ms_.insert(born_ms);
  }

  void settled(const Tag& tag) {
    const auto found = under_way_.find(tag);
    if (found == under_way_.end() || found->second.settled) return;
    Entry& entry = found->second;
    entry.settled = true;
    settled_ms_ = std::max(settled_ms_, entry.born_ms);
    forget_birth(entry);
    while (!under_way_.empty() && under_way_.begin()->second.settled) {
      position_ = under_way_.begin()->second.end_offset;
      witness_ = under_way_.begin()->second.witness;
      under_way_.erase(under_way_.begin());
    }
  }
  // The same for a source without order, where there is no position.
  void settled_apart(const Tag& tag) {
    settled(tag);
    under_way_.erase(tag);
  }
  // It was given back to a source without order, and comes again or not.
  void given_back(const Tag& tag) {
    const auto found = under_way_.find(tag);
    if (found == under_way_.end()) return;
    if (!found->second.settled) forget_birth(found->second);
    under_way_.erase(found);
  }

  // The position that may be committed, if it moved since the last call.
  std::optional<std::int64_t> take() {
    std::optional<std::int64_t> moved;
    moved.swap(position_);
    return moved;
  }

  bool idle() const { return under_way_.empty(); }
  Progress progress() const {
    return {
        .settled_ms = floors_.empty() ? settled_ms_ : std::min(settled_ms_, floors_.begin()->first),
        .waiting_ms = waiting_ms_.empty() ? -1 : *waiting_ms_.begin(),
        .drained = false,
        .witness = witness_};
  }

 private:
  struct Entry {
    std::int64_t end_offset = 0;
    std::optional<std::int64_t> floor_ms;  // unset: its birth is known
    std::int64_t born_ms = -1;
    Witness witness;
    bool settled = false;
  };

  void forget_floor(Entry& entry) {
    const auto floor = floors_.find(*entry.floor_ms);
    if (--floor->second == 0) floors_.erase(floor);
    entry.floor_ms.reset();
  }
  void forget_birth(Entry& entry) {
    if (entry.floor_ms) forget_floor(entry);
    if (entry.born_ms >= 0) waiting_ms_.erase(waiting_ms_.find(entry.born_ms));
  }

  std::map<Tag, Entry> under_way_;
  std::map<std::int64_t, std::size_t> floors_;  // of what is not identified, and how many have it
  std::multiset<std::int64_t> waiting_ms_;      // the births of what is not settled
  std::int64_t settled_ms_ = -1;
  Witness witness_;  // of the message before the position
  std::optional<std::int64_t> position_;
};

}  // namespace once
