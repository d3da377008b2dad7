// SPDX-License-Identifier: Apache-2.0
#include "model/ledger.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>

#include "model/hint.h"
#include "model/sha256.h"

namespace once {
namespace {

Status check_length(std::string_view what, std::string_view name) {
  if (name.size() > name_bytes_max)
    return fail(Remedy::stop, "config",
                fmt::format("the {} \"{}...\" has {} bytes; at most {} are allowed", what,
                            name.substr(0, 40), name.size(), name_bytes_max));
  return {};
}

// Whether a person can write a name on a command line: C0, DEL and C1 are control characters.
bool is_writable(std::string_view name) {
  if (!simdjson::validate_utf8(name.data(), name.size())) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const auto next = i + 1 < name.size() ? static_cast<unsigned char>(name[i + 1]) : 0;
    if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && next < 0xa0)) return false;
  }
  return true;
}

Status check_name(std::string_view what, std::string_view name) {
  if (name.empty())
    return fail(Remedy::stop, "config", fmt::format("the {} is empty; give it a name", what));
  return check_length(what, name);
}

}  // namespace

Status check_scope(std::string_view scope) {
  ONCE_TRY(check_name("scope", scope));
  if (is_writable(scope)) return {};
  return fail(Remedy::stop, "config",
              "the scope is not UTF-8 or has a control character in it (a line break, a tab): no "
              "command could name it; choose another name");
}
Status check_partition(std::string_view partition) { return check_name("partition", partition); }
Status check_destination(std::string_view destination) {
  return check_name("destination", destination);
}
Status check_source_identity(std::string_view identity) {
  return check_length("identity of the topic", identity);
}

Status check_id(std::string_view id) {
  if (id.empty()) return fail(Remedy::park, "no_id", "the id is empty");
  if (id.size() > id_bytes_max)
    return fail(Remedy::park, "long_id",
                fmt::format("the id \"{}...\" has {} bytes, at most {} are allowed; use a digest",
                            id.substr(0, 40), id.size(), id_bytes_max));
  return {};
}

Status check_entries(std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    if (entry.id.empty())
      return fail(Remedy::park, "no_id",
                  fmt::format("the message at offset {} of partition \"{}\" has an empty id",
                              entry.offset, entry.partition));
    if (entry.id.size() > id_bytes_max)
      return fail(Remedy::park, "long_id",
                  fmt::format("the id of the message at offset {} of partition \"{}\" has {} "
                              "bytes, at most {} are allowed; use a digest rule",
                              entry.offset, entry.partition, entry.id.size(), id_bytes_max));
  }
  return {};
}

Status check_advance(std::string_view partition, const Position& from, std::int64_t to) {
  ONCE_TRY(check_partition(partition));
  if (to < from.offset)
    return fail(Remedy::stop, "backwards",
                fmt::format("the position of partition \"{}\" cannot move back from {} to {}",
                            partition, from.offset, to));
  return {};
}

Status check_settle(const Outcome& outcome) {
  if (outcome.kind == Outcome::Kind::retry)
    return fail(Remedy::stop, "config",
                "`retry` is not an outcome that can be recorded; roll back and try again");
  return {};
}

Progress joined(const Progress& earlier, const Progress& later) {
  return {std::max(earlier.settled_ms, later.settled_ms), later.waiting_ms,
          earlier.drained || later.drained,
          later.witness.offset >= 0 ? later.witness : earlier.witness};
}

std::uint64_t next_fence(std::uint64_t last, std::int64_t now_ms) {
  return std::max(last + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(now_ms, 0)));
}

// Fences and positions only grow while nobody changes them by hand.
Error fenced_error(std::string_view scope, std::string_view partition, const Position& expected,
                   const Position& actual) {
  const bool went_back = actual.fence < expected.fence ||
                         (actual.fence == expected.fence && actual.offset < expected.offset);
  return {
      Remedy::stop, "fenced",
      fmt::format(
          "scope \"{}\", partition \"{}\": the position is {} with fence {}, not {} with fence {}; "
          "{}",
          scope, partition, actual.offset, actual.fence, expected.offset, expected.fence,
          went_back
              ? "the store is older than what this process has committed: it was restored "
                "from a backup, or a replica took over that had not received everything. "
                "Start again to go on from what the store has"
              : "another process has taken the partition since and goes on there, or the "
                "position was set by hand. `once status` shows which process runs the scope; start "
                "again to take it back"),
      std::nullopt};
}

Error other_source_error(std::string_view scope, std::string_view partition, std::int64_t offset,
                         std::string_view stored_identity, std::string_view offered_identity) {
  const auto move = [&](std::string_view to, std::string_view reason) {
    return hint({"position", "set", "--scope", scope, "--partition", partition, "--to", to,
                 "--reason", reason});
  };
  return {Remedy::stop, "gone",
          fmt::format("scope \"{}\", partition \"{}\": the position {} belongs to a topic with the "
                      "identity {}, but the source has the identity {}: it was deleted and created "
                      "again, or is in another cluster or directory. To read it from its first "
                      "message: {}; if it is a copy with the same offsets: {}",
                      scope, partition, offset, stored_identity, offered_identity,
                      move("first", "the topic is another one"),
                      move(fmt::format("{}", offset), "a copy with the same offsets")),
          std::nullopt};
}

Status check_reason(std::string_view reason) {
  if (reason.find_first_not_of(" \t\r\n") != std::string_view::npos) return {};
  return fail(Remedy::stop, "config",
              "a reason is needed: it goes to the operation log, for those who ask later");
}

Status check_correction(const Correction& correction) {
  if (const auto* to = std::get_if<SetPosition>(&correction)) {
    if (to->offset < -1)
      return fail(Remedy::stop, "config",
                  fmt::format("{} is not an offset; the smallest is -1, the first message there is",
                              to->offset));
    return check_partition(to->partition);
  }
  if (const auto* horizon = std::get_if<SetHorizon>(&correction)) {
    if (horizon->horizon_ms >= 0) return {};
    return fail(Remedy::stop, "config",
                fmt::format("{} is not a horizon; the smallest is 0, nothing is forgotten",
                            horizon->horizon_ms));
  }
  if (const auto* restart = std::get_if<RestartDestination>(&correction))
    return check_destination(restart->destination);
  if (const auto* pending = std::get_if<DropPending>(&correction))
    return check_destination(pending->destination);
  return {};
}

std::string_view action_of(const Correction& correction) {
  constexpr std::array<std::string_view, 6> actions{"set position",    "set horizon",
                                                    "release horizon", "restart destination",
                                                    "drop pending",    "drop scope"};
  return actions.at(correction.index());
}

std::string subject_of(const Correction& correction, std::string_view scope) {
  if (const auto* to = std::get_if<SetPosition>(&correction))
    return fmt::format("{} to {}", to->partition, to->offset);
  if (const auto* horizon = std::get_if<SetHorizon>(&correction))
    return fmt::format("{}", horizon->horizon_ms);
  if (const auto* restart = std::get_if<RestartDestination>(&correction))
    return restart->destination;
  if (const auto* pending = std::get_if<DropPending>(&correction)) return pending->destination;
  return std::string(scope);
}

std::string_view log_scope_of(const Correction& correction, std::string_view scope) {
  return std::holds_alternative<DropScope>(correction) ? store_scope : scope;
}

Error missing_id(std::string_view scope, std::string_view id) {
  return {Remedy::stop, "not_known",
          fmt::format("scope \"{}\" has no id \"{}\" in its ledger", scope, id), std::nullopt};
}

Error missing_parked(std::string_view scope, std::int64_t number) {
  return {Remedy::stop, "not_known",
          fmt::format("scope \"{}\" has no parked message {}; nothing was changed", scope, number),
          std::nullopt};
}

std::string force_note(const LedgerRecord& was, std::string_view reason) {
  return fmt::format("{} (was {}{}{}; {} offset {}, born {} ms, recorded {} ms)", reason,
                     name_of(was.outcome.kind), was.outcome.detail.empty() ? "" : ": ",
                     was.outcome.detail, was.partition, was.offset, was.born_ms, was.recorded_ms);
}

Error missing_deferred(std::string_view scope, std::int64_t number) {
  return {
      Remedy::stop, "not_known",
      fmt::format("scope \"{}\" has no message {} that waits; nothing was changed", scope, number),
      std::nullopt};
}

Error resumed_elsewhere(std::string_view where, std::string_view id) {
  return {Remedy::retry, "conflict",
          fmt::format("{}: the record of \"{}\" was changed by another transaction; run this one "
                      "again",
                      where, id),
          std::nullopt};
}

std::string order_token(std::string_view key) {
  Sha256 hash("once order key 1");
  hash.field(key);
  const auto digest = hash.digest128();
  return {digest.begin(), digest.end()};
}

std::string order_token(const Delivery& delivery) {
  if (!delivery.deferral.in_order || !delivery.has_key()) return {};
  return order_token(delivery.key);
}

Outcome abandoned(std::string_view reason) {
  return parked(fmt::format("given up while it waited: {}", reason));
}

std::string deferral_note(std::int64_t number, std::string_view reason) {
  return fmt::format("{} (waiting message {})", reason, number);
}

std::string replay_note(std::int64_t number, std::string_view destination,
                        std::string_view reason) {
  return fmt::format("{} (parked message {}, to {})", reason, number, destination);
}

std::string drop_note(std::int64_t number, std::string_view reason) {
  return fmt::format("{} (parked message {})", reason, number);
}

std::string drop_pending_note(std::string_view destination, std::string_view reason) {
  return fmt::format("{} (pending for \"{}\")", reason, destination);
}

}  // namespace once
