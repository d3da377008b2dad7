// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/producer_state.h"

#include <fmt/format.h>

#include <charconv>

#include "wire/kafka/envelope.h"

namespace once::kafka {

// once1 PRODUCER/EPOCH/LAST_SEQUENCE LAST_OFFSET
std::string ProducerState::metadata() const {
  return fmt::format("once1 {} {}", encode_stamp({producer, epoch, last_sequence}), last_offset);
}

std::optional<ProducerState> ProducerState::read(std::int64_t offset, std::string_view metadata) {
  constexpr std::string_view version = "once1 ";
  const auto space = metadata.rfind(' ');
  if (offset < 0 || !metadata.starts_with(version) || space < version.size()) return std::nullopt;
  const auto stamp = decode_stamp(metadata.substr(version.size(), space - version.size()));
  if (!stamp) return std::nullopt;
  ProducerState state;
  state.producer = stamp->producer;
  state.epoch = stamp->epoch;
  state.next_sequence = static_cast<std::uint64_t>(offset);
  state.last_sequence = stamp->sequence;
  const char* end = metadata.data() + metadata.size();
  const auto number = std::from_chars(metadata.data() + space + 1, end, state.last_offset);
  if (number.ec != std::errc() || number.ptr != end) return std::nullopt;
  return state;
}

// Messages of others may stand between ours, so only the first one's place is known.
std::int64_t ProducerState::offset_of(std::uint64_t sequence) const {
  return sequence == last_sequence ? last_offset : -1;
}

std::string state_group(std::string_view producer_name) {
  return fmt::format("once-producer-{}", producer_name);
}

}  // namespace once::kafka
