// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace once::kafka {

// What a producer of ours has at one partition: written in the same Kafka transaction as its
// messages, so that both are there or neither. Kafka keeps it for us as the offset that the group
// `once-producer-NAME` has committed at that partition: the offset is the next sequence, and its
// metadata say the rest.
struct ProducerState {
  std::uint64_t producer = 0;
  std::uint32_t epoch = 0;
  std::uint64_t next_sequence = 0;
  // The last batch, so that a duplicate of it can be answered with its place.
  std::uint64_t last_sequence = 0;
  std::int64_t last_offset = -1;
  // Of its last message; not known where an older version has sent it.
  std::optional<std::uint64_t> last_digest = std::nullopt;

  std::string metadata() const;
  static std::optional<ProducerState> read(std::int64_t offset, std::string_view metadata);

  // Where a message is, if that is still known; -1 if not.
  std::int64_t offset_of(std::uint64_t sequence) const;

  bool operator==(const ProducerState&) const = default;
};

std::string state_group(std::string_view producer_name);

}  // namespace once::kafka
