// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>
#include <once/source.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace once {

// How many messages of the topic are not handled yet: of our partitions by what was delivered and
// handled, of those of other owners by what the store knows. Used by the poller; the two figures
// may be read by any thread.
class Lag {
 public:
  // A partition is ours, and its messages before `offset` are handled; -1: from its first message.
  void own(std::string_view partition, std::int64_t offset);
  void disown(std::string_view partition);

  void delivered(std::string_view partition, std::int64_t end_offset);
  void handled(std::string_view partition, std::int64_t end_offset);
  // The source has told where the partition ends.
  void ends_at(std::string_view partition, std::int64_t end_offset);
  // Everything that is there was delivered: what the source counts beyond it are no messages, and
  // are not counted again.
  void drained();
  // Where all partitions end, and how far the other owners have come, if that is known.
  void look(std::span<const PartitionEnd> ends, const ScopeRecord* stored);

  // What the figures show from now on.
  void update();
  std::int64_t messages() const { return messages_; }     // -1: nothing is known yet
  std::size_t partitions() const { return partitions_; }  // that are counted in it

 private:
  struct Owned {
    std::int64_t delivered_end = -1;
    std::int64_t handled_end = -1;
    std::int64_t available = -1;  // where it ends, as far as the source counts messages ...
    std::int64_t end_seen = -1;   // ... and as it was told
  };

  std::map<std::string, Owned, std::less<>> owned_;
  std::map<std::string, std::int64_t, std::less<>> others_;  // at the last look
  std::atomic<std::int64_t> messages_{-1};
  std::atomic<std::size_t> partitions_{0};
};

}  // namespace once
