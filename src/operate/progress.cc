// SPDX-License-Identifier: Apache-2.0
#include "operate/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "operate/failure.h"
#include "operate/record_json.h"

namespace once::operate {
namespace {

std::optional<PartitionRecord> find(const ScopeRecord& scope, const std::string& partition) {
  for (const PartitionRecord& record : scope.partitions)
    if (record.partition == partition) return record;
  return std::nullopt;
}

// More messages than a person skips at once.
constexpr std::int64_t skipped_max = 1'000'000'000;
// Of 1973: nothing that is handled today was born before, and seconds of today are less.
constexpr std::int64_t horizon_ms_min = 100'000'000'000;

constexpr std::string_view anyway = "If this is meant, add --force";

Status check(const ScopeRecord& scope, const SetPosition& set) {
  const auto was = find(scope, set.partition);
  const std::int64_t from = was ? std::max<std::int64_t>(was->position.offset, 0) : 0;
  if (set.offset - from <= skipped_max) return {};
  return fail_usage(
      fmt::format("offset {} is {} messages ahead of the position of partition \"{}\", {}: they "
                  "would never be handled. {}",
                  set.offset, set.offset - from, set.partition, from, anyway));
}

Status check(const ScopeRecord& scope, const SetHorizon& set) {
  if (set.horizon_ms == 0) return {};
  if (set.horizon_ms > scope.now_ms)
    return fail_usage(
        fmt::format("{} is in the future ({} now): all messages would be too old, and parked. {}",
                    time_text(set.horizon_ms), time_text(scope.now_ms), anyway));
  if (set.horizon_ms >= horizon_ms_min) return {};
  return fail_usage(fmt::format("{} ms is {}; is that a time in seconds? Then write {}000. {}",
                                set.horizon_ms, time_text(set.horizon_ms), set.horizon_ms, anyway));
}

Status check(const ScopeRecord&, const RestartDestination&) { return {}; }

}  // namespace

Status check_plausible(const ScopeRecord& scope, const Correction& correction) {
  return std::visit([&](const auto& one) { return check(scope, one); }, correction);
}

Result<std::vector<ScopeProgress>> progress_of(Books& books) {
  std::vector<ScopeProgress> found;
  for (const std::string& scope : books.user_scopes()) {
    ScopeRecord record = ONCE_TRY(books.records().describe(scope));
    found.push_back({scope, std::move(record)});
  }
  return found;
}

Result<PositionChange> set_position(Books& books, const std::string& partition, std::int64_t offset,
                                    const std::string& reason, bool forced) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const ScopeRecord record = ONCE_TRY(books.records().describe(scope));
  const auto was = find(record, partition);
  if (!was)
    return fail_not_known(
        fmt::format("scope \"{}\" has no partition \"{}\"; once position ls lists those it has",
                    scope, partition));
  const SetPosition correction{partition, offset};
  if (!forced) ONCE_TRY(check_plausible(record, correction));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->correct(scope, correction, reason));
  return PositionChange{scope, *was, offset};
}

Result<HorizonChange> set_horizon(Books& books, std::int64_t horizon_ms, const std::string& reason,
                                  bool forced) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const ScopeRecord was = ONCE_TRY(books.records().describe(scope));
  const SetHorizon correction{horizon_ms};
  if (!forced) ONCE_TRY(check_plausible(was, correction));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->correct(scope, correction, reason));
  return HorizonChange{scope, was.horizon_ms, horizon_ms};
}

Json horizon_json(const ScopeProgress& progress) {
  Json json = {{"scope", progress.scope},
               {"horizon_ms", progress.record.horizon_ms},
               {"now_ms", progress.record.now_ms},
               {"partitions", Json::array()}};
  for (const PartitionRecord& partition : progress.record.partitions)
    json["partitions"].push_back(json_of(partition));
  return json;
}

Json position_json(const std::string& scope, const PartitionRecord& record) {
  Json json = json_of(record);
  json["scope"] = scope;
  return json;
}

Json json_of(const PositionChange& change) {
  return {{"scope", change.scope},
          {"partition", change.was.partition},
          {"offset", change.offset},
          {"was", json_of(change.was)}};
}

Json json_of(const HorizonChange& change) {
  return {{"scope", change.scope}, {"horizon_ms", change.horizon_ms}, {"was_ms", change.was_ms}};
}

}  // namespace once::operate
