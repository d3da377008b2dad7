// SPDX-License-Identifier: Apache-2.0
#include "model/route.h"

#include <fmt/format.h>

#include "model/hint.h"

namespace once {
namespace {

std::string ahead_text(const RouteRange& store, std::uint64_t sequence) {
  return fmt::format(
      "the destination is ahead: it has {} messages of this store, but the store has only sent {}. "
      "The store was restored from a backup or failed over to a replica that lagged, or a copy of "
      "the store sends as well. The next {} messages would be taken for duplicates and lost",
      sequence, store.next, sequence - store.next);
}

std::string behind_text(const RouteRange& store, std::uint64_t sequence) {
  return fmt::format(
      "the destination is behind: it has {} messages of this store, but the store has sent {}. The "
      "destination was deleted and created again, was restored, or has forgotten this producer. "
      "{} messages that were sent may be missing there, and the store no longer has them",
      sequence, store.first, store.first - sequence);
}

std::string restart(std::string_view destination) {
  return hint({"outbox", "restart", destination, "--reason", "restored, or created again"});
}

}  // namespace

bool agrees(const RouteRange& store, std::uint64_t sequence) {
  return store.first <= sequence && sequence <= store.next;
}

Error diverged_error(std::string_view destination, std::uint32_t partition, const RouteRange& store,
                     std::uint64_t sequence) {
  return {Remedy::stop, "diverged",
          fmt::format(
              "outbox \"{}\", partition {}: {}. Nothing was sent. To send what is pending "
              "and all that follows as a new producer: {}; what "
              "was sent since the backup and is produced again is then sent again "
              "(docs/operating.md)",
              destination, partition,
              sequence > store.next ? ahead_text(store, sequence) : behind_text(store, sequence),
              restart(destination)),
          std::nullopt};
}

Error another_sender_error(std::string_view destination, std::uint32_t partition,
                           std::uint64_t sequence) {
  return {Remedy::stop, "diverged",
          fmt::format(
              "outbox \"{}\", partition {}: another message is there under sequence {}, which this "
              "store has given to a message that is pending: a copy of the store, with the same "
              "identity, sends there as well, or the store was restored to before a message was "
              "parked. Nothing was sent: what is pending would be taken for "
              "duplicates and lost. Stop a copy's relay or give it destinations of its own, then "
              "send what is pending and all that follows as a new producer: {}; "
              "what of it was sent before the copy sent is then sent again "
              "(docs/operating.md)",
              destination, partition, sequence, restart(destination)),
          std::nullopt};
}

Error restart_unknown_error(std::string_view destination, std::uint32_t partition,
                            std::uint64_t sent) {
  return {
      Remedy::stop, "diverged",
      fmt::format(
          "outbox \"{}\", partition {}: the destination is ahead: it has {} messages that were "
          "sent after an `outbox restart` that this store does not know. The store was restored "
          "from a backup from before it. Nothing was sent: what is pending may be there. To "
          "send it and all that follows as a new producer all the same: {}, "
          "and again until the relay sends (docs/operating.md)",
          destination, partition, sent, restart(destination)),
      std::nullopt};
}

Error replaced_destination_error(std::string_view destination, const Error& gone) {
  return {Remedy::stop, "diverged",
          fmt::format("outbox \"{}\": {}. What was sent before may be missing there, and the store "
                      "no longer has it. Nothing was sent. To send what is pending and all that "
                      "follows as a new producer: {} (docs/operating.md)",
                      destination, gone.text, restart(destination)),
          std::nullopt};
}

std::string diverged_role(std::int64_t restarts) {
  return fmt::format("diverged after {} restarts: ", restarts);
}

Status check_assign(std::span<const std::int64_t> numbers,
                    std::span<const std::uint32_t> partitions,
                    std::span<const std::uint64_t> sequences) {
  const bool fits = numbers.size() == partitions.size() &&
                    (sequences.empty() || sequences.size() == numbers.size());
  if (fits) return {};
  return fail(Remedy::stop, "config",
              "assign needs one partition, and one sequence or none, for each row");
}

Status check_sequence(std::string_view destination, std::uint32_t partition, std::int64_t sequence,
                      std::span<const std::uint64_t> expected, std::size_t i) {
  const auto next = static_cast<std::uint64_t>(sequence);
  if (expected.empty() || expected[i] == next) return {};
  return fail(diverged_error(destination, partition, {next, next}, expected[i]));
}

}  // namespace once
