// SPDX-License-Identifier: Apache-2.0
#include "operate/progress.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "operate/failure.h"
#include "operate/record_json.h"

namespace once::operate {
namespace {

std::optional<PartitionRecord> find(const ScopeRecord& scope, const std::string& partition) {
  for (const PartitionRecord& record : scope.partitions)
    if (record.partition == partition) return record;
  return std::nullopt;
}

}  // namespace

Result<std::vector<ScopeProgress>> progress_of(Books& books) {
  std::vector<ScopeProgress> found;
  for (const std::string& scope : books.user_scopes()) {
    ScopeRecord record = ONCE_TRY(books.records().describe(scope));
    found.push_back({scope, std::move(record)});
  }
  return found;
}

Result<PositionChange> set_position(Books& books, const std::string& partition, std::int64_t offset,
                                    const std::string& reason) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const auto was = find(ONCE_TRY(books.records().describe(scope)), partition);
  if (!was)
    return fail_not_known(
        fmt::format("scope \"{}\" has no partition \"{}\"; once position ls lists those it has",
                    scope, partition));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->correct(scope, SetPosition{partition, offset}, reason));
  return PositionChange{scope, *was, offset};
}

Result<HorizonChange> set_horizon(Books& books, std::int64_t horizon_ms,
                                  const std::string& reason) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const ScopeRecord was = ONCE_TRY(books.records().describe(scope));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->correct(scope, SetHorizon{horizon_ms}, reason));
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
