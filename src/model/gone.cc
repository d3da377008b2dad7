// SPDX-License-Identifier: Apache-2.0
#include "model/gone.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace once {
namespace {

std::string move_position(std::string_view partition, std::string_view to,
                          std::string_view reason) {
  return hint({"position", "set", "--partition", partition, "--to", to, "--reason", reason});
}

Error gone(Lost lost, std::string text) {
  return {Remedy::stop, "gone", std::move(text), std::nullopt, std::move(lost)};
}

std::string way_on_of(const Lost& lost) {
  switch (lost.why) {
    case Lost::Why::deleted:
      return fmt::format(". To go on with the oldest: {}",
                         move_position(lost.partition, "first", "messages were deleted"));
    case Lost::Why::replaced:
      return fmt::format(". To read it from its first message: {}",
                         move_position(lost.partition, "first", "the topic is another one"));
    case Lost::Why::ended: break;
  }
  return fmt::format(
      ". To read it from its first message: {}; to go on with what comes next: {}",
      move_position(lost.partition, "first", "the topic is another one"),
      move_position(lost.partition, fmt::format("{}", lost.end), "what was before is handled"));
}

}  // namespace

Error forgotten_error(std::string_view partition, std::int64_t offset, std::int64_t oldest) {
  return gone({.why = Lost::Why::deleted, .partition = std::string(partition)},
              fmt::format("{} has no message {} any more: the oldest is {}. Messages were deleted "
                          "before they were handled; keep them longer",
                          partition, offset, oldest));
}

Error ends_before_error(std::string_view partition, std::int64_t end, std::int64_t offset) {
  return gone(
      {.why = Lost::Why::ended, .partition = std::string(partition), .end = end},
      fmt::format("{} ends at {}, before message {}: it was deleted and created again, or restored "
                  "from a backup, or the position was set too far",
                  partition, end, offset));
}

Error replaced_error(std::string_view partition, std::int64_t offset) {
  return gone({.why = Lost::Why::replaced, .partition = std::string(partition)},
              fmt::format("{} has another message at offset {} than the one that was read there: "
                          "it was deleted and created again, or restored from a backup",
                          partition, offset));
}

Error with_way_on(Error error, const HintPlace& place) {
  if (error.lost) error.text += way_on_of(*error.lost);
  error.text = with_complete_hints(error.text, place);
  return error;
}

}  // namespace once
