// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace once {

// The position of a partition whose messages are settled out of order: everything below it is
// settled. Memory in proportion to what is under way. Used by one thread.
class Watermark {
 public:
  // A delivery is under way; `end_offset` is the position once it and all before it are settled.
  void started(std::int64_t offset, std::int64_t end_offset) {
    under_way_.try_emplace(offset, Entry{end_offset, false});
  }

  void settled(std::int64_t offset) {
    if (auto found = under_way_.find(offset); found != under_way_.end())
      found->second.settled = true;
    while (!under_way_.empty() && under_way_.begin()->second.settled) {
      position_ = under_way_.begin()->second.end_offset;
      under_way_.erase(under_way_.begin());
    }
  }

  // The position that may be committed, if it moved since the last call.
  std::optional<std::int64_t> take() {
    std::optional<std::int64_t> moved;
    moved.swap(position_);
    return moved;
  }

 private:
  struct Entry {
    std::int64_t end_offset = 0;
    bool settled = false;
  };
  std::map<std::int64_t, Entry> under_way_;
  std::optional<std::int64_t> position_;
};

}  // namespace once
