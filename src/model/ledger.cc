// SPDX-License-Identifier: Apache-2.0
#include "model/ledger.h"

#include <fmt/format.h>

namespace once {
namespace {

Status check_name(std::string_view what, std::string_view name) {
  if (name.empty())
    return fail(Remedy::stop, "config", fmt::format("the {} is empty; give it a name", what));
  if (name.size() > name_bytes_max)
    return fail(Remedy::stop, "config",
                fmt::format("the {} \"{}...\" has {} bytes; at most {} are allowed", what,
                            name.substr(0, 40), name.size(), name_bytes_max));
  return {};
}

}  // namespace

Status check_scope(std::string_view scope) { return check_name("scope", scope); }
Status check_partition(std::string_view partition) { return check_name("partition", partition); }
Status check_destination(std::string_view destination) {
  return check_name("destination", destination);
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

Error fenced_error(std::string_view scope, std::string_view partition, const Position& expected,
                   const Position& actual) {
  return {
      Remedy::stop, "fenced",
      fmt::format("scope \"{}\", partition \"{}\": the position is {} with fence {}, not {} "
                  "with fence {}; another owner has been here",
                  scope, partition, actual.offset, actual.fence, expected.offset, expected.fence),
      std::nullopt};
}

Status check_reason(std::string_view reason) {
  if (reason.find_first_not_of(" \t\r\n") != std::string_view::npos) return {};
  return fail(Remedy::stop, "config",
              "a reason is needed: it goes to the operation log, for those who ask later");
}

Error missing_id(std::string_view scope, std::string_view id) {
  return {Remedy::stop, "missing",
          fmt::format("scope \"{}\" has no id \"{}\" in its ledger", scope, id), std::nullopt};
}

Error missing_parked(std::string_view scope, std::int64_t number) {
  return {Remedy::stop, "missing",
          fmt::format("scope \"{}\" has no parked message {}; nothing was changed", scope, number),
          std::nullopt};
}

std::string replay_note(std::int64_t number, std::string_view destination,
                        std::string_view reason) {
  return fmt::format("{} (parked message {}, to {})", reason, number, destination);
}

std::string drop_note(std::int64_t number, std::string_view reason) {
  return fmt::format("{} (parked message {})", reason, number);
}

}  // namespace once
