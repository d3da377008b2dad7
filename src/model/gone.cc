// SPDX-License-Identifier: Apache-2.0
#include "model/gone.h"

#include <fmt/format.h>

#include <string>

#include "model/hint.h"

namespace once {
namespace {

std::string move_position(std::string_view partition, std::string_view to,
                          std::string_view reason) {
  return hint({"position", "set", "--partition", partition, "--to", to, "--reason", reason});
}

Error gone(std::string text) { return {Remedy::stop, "gone", std::move(text), std::nullopt}; }

}  // namespace

Error forgotten_error(std::string_view partition, std::int64_t offset, std::int64_t oldest) {
  return gone(fmt::format(
      "{} has no message {} any more: the oldest is {}. Messages were deleted before "
      "they were handled; keep them longer. To go on with the oldest: {}",
      partition, offset, oldest, move_position(partition, "first", "messages were deleted")));
}

Error ends_before_error(std::string_view partition, std::int64_t end, std::int64_t offset) {
  return gone(fmt::format(
      "{} ends at {}, before message {}: it was deleted and created again, or restored from a "
      "backup, or the position was set too far. To read it from its first "
      "message: {}; to go on with what comes next: {}",
      partition, end, offset, move_position(partition, "first", "the topic is another one"),
      move_position(partition, fmt::format("{}", end), "what was before is handled")));
}

Error replaced_error(std::string_view partition, std::int64_t offset) {
  return gone(fmt::format(
      "{} has another message at offset {} than the one that was read there: it was deleted and "
      "created again, or restored from a backup. To read it from its first message: {}",
      partition, offset, move_position(partition, "first", "the topic is another one")));
}

}  // namespace once
