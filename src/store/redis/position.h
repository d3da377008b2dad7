// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <once/records.h>

#include <charconv>
#include <string>
#include <string_view>

namespace once {

// A partition as it is kept: "25 3" is offset 25 under fence 3, which tells owners apart. Behind
// that are settled, waiting and drained, offset and digest of the witness, and as the rest the
// identity of the topic, all separated by blanks. What was written by a version before 2, or by a
// person, ends after the fence: nothing else is known.
inline std::string position_text(const Position& position) {
  return fmt::format("{} {}", position.offset, position.fence);
}

inline PartitionRecord partition_in(std::string_view name, std::string_view text) {
  PartitionRecord record;
  record.partition = name;
  const auto take = [&](auto& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  };
  take(record.position.offset);
  take(record.position.fence);
  if (text.empty()) return record;
  take(record.settled_ms);
  take(record.waiting_ms);
  take(record.drained_ms);
  take(record.position.witness.offset);
  take(record.position.witness.digest);
  record.source_identity = text;
  return record;
}

inline Position position_in(std::string_view text) { return partition_in({}, text).position; }

}  // namespace once
