// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/transaction.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace once {

// The position and the progress of a partition whose messages are settled out of order: everything
// below the position is settled. Memory in proportion to what is under way. Used by one thread.
class Watermark {
 public:
  // A delivery is under way; `end_offset` is the position once it and all before it are settled.
  // `born_ms` is its birth, as far as it is believed; -1: it does not count.
  void started(const Witness& witness, std::int64_t end_offset, std::int64_t born_ms) {
    const bool fresh =
        under_way_.try_emplace(witness.offset, Entry{end_offset, born_ms, witness, false}).second;
    if (fresh && born_ms >= 0) waiting_ms_.insert(born_ms);
  }

  void settled(std::int64_t offset) {
    const auto found = under_way_.find(offset);
    if (found == under_way_.end() || found->second.settled) return;
    Entry& entry = found->second;
    entry.settled = true;
    settled_ms_ = std::max(settled_ms_, entry.born_ms);
    if (entry.born_ms >= 0) waiting_ms_.erase(waiting_ms_.find(entry.born_ms));
    while (!under_way_.empty() && under_way_.begin()->second.settled) {
      position_ = under_way_.begin()->second.end_offset;
      witness_ = under_way_.begin()->second.witness;
      under_way_.erase(under_way_.begin());
    }
  }
  // The same for a source without order, where there is no position.
  void settled_apart(std::int64_t tag) {
    settled(tag);
    under_way_.erase(tag);
  }

  // The position that may be committed, if it moved since the last call.
  std::optional<std::int64_t> take() {
    std::optional<std::int64_t> moved;
    moved.swap(position_);
    return moved;
  }

  bool idle() const { return under_way_.empty(); }
  Progress progress() const {
    return {.settled_ms = settled_ms_,
            .waiting_ms = waiting_ms_.empty() ? -1 : *waiting_ms_.begin(),
            .drained = false,
            .witness = witness_};
  }

 private:
  struct Entry {
    std::int64_t end_offset = 0;
    std::int64_t born_ms = -1;
    Witness witness;
    bool settled = false;
  };
  std::map<std::int64_t, Entry> under_way_;
  std::multiset<std::int64_t> waiting_ms_;  // the births of what is not settled
  std::int64_t settled_ms_ = -1;
  Witness witness_;  // of the message before the position
  std::optional<std::int64_t> position_;
};

}  // namespace once
