// SPDX-License-Identifier: Apache-2.0
#include "model/gone.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace once {
namespace {

// Behind the partition, in each of the texts, and what no other text has.
constexpr std::string_view forgotten_mark = " has no message ";
constexpr std::string_view ends_mark = " ends at ";
constexpr std::string_view forgotten_why = ". Messages were deleted before they were handled";
constexpr std::string_view ends_why = ", before message ";
constexpr std::string_view replaced_mark = " has another message at offset ";

std::string move_position(std::string_view partition, std::string_view to,
                          std::string_view reason) {
  return hint({"position", "set", "--partition", partition, "--to", to, "--reason", reason});
}

Error gone(std::string text) { return {Remedy::stop, "gone", std::move(text), std::nullopt}; }

// What stands before the mark; empty: it is not this text.
std::string_view partition_in(std::string_view text, std::string_view mark, std::string_view why) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos || text.find(why, at) == std::string_view::npos) return {};
  return text.substr(0, at);
}

std::string way_on_in(std::string_view text) {
  if (const auto name = partition_in(text, forgotten_mark, forgotten_why); !name.empty())
    return fmt::format(". To go on with the oldest: {}",
                       move_position(name, "first", "messages were deleted"));
  if (const auto name = partition_in(text, replaced_mark, replaced_mark); !name.empty())
    return fmt::format(". To read it from its first message: {}",
                       move_position(name, "first", "the topic is another one"));
  const auto name = partition_in(text, ends_mark, ends_why);
  if (name.empty()) return {};
  const std::string_view behind = text.substr(name.size() + ends_mark.size());
  return fmt::format(
      ". To read it from its first message: {}; to go on with what comes next: {}",
      move_position(name, "first", "the topic is another one"),
      move_position(name, behind.substr(0, behind.find(',')), "what was before is handled"));
}

}  // namespace

Error forgotten_error(std::string_view partition, std::int64_t offset, std::int64_t oldest) {
  return gone(fmt::format("{}{}{} any more: the oldest is {}{}; keep them longer", partition,
                          forgotten_mark, offset, oldest, forgotten_why));
}

Error ends_before_error(std::string_view partition, std::int64_t end, std::int64_t offset) {
  return gone(fmt::format(
      "{}{}{}{}{}: it was deleted and created again, or restored from a backup, or the position "
      "was set too far",
      partition, ends_mark, end, ends_why, offset));
}

Error replaced_error(std::string_view partition, std::int64_t offset) {
  return gone(
      fmt::format("{}{}{} than the one that was read there: it was deleted and created "
                  "again, or restored from a backup",
                  partition, replaced_mark, offset));
}

Error with_way_on(Error error, const HintPlace& place) {
  if (error.tag == "gone" && error.text.find("`once ") == std::string::npos)
    error.text += way_on_in(error.text);
  error.text = with_complete_hints(error.text, place);
  return error;
}

}  // namespace once
