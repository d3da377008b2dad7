// SPDX-License-Identifier: Apache-2.0
#include "operate/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "audit/looking_url.h"
#include "base/url.h"
#include "open/topics.h"
#include "operate/failure.h"
#include "operate/message_json.h"
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

Status check(const ScopeRecord&, const ReleaseHorizon&) { return {}; }
Status check(const ScopeRecord&, const RestartDestination&) { return {}; }
Status check(const ScopeRecord&, const DropPending&) { return {}; }
Status check(const ScopeRecord&, const DropScope&) { return {}; }

// Of a partition by its name, TOPIC/NUMBER.
std::size_t number_of(const std::string& partition) {
  std::size_t number = std::numeric_limits<std::size_t>::max();
  const std::string_view digits = partition_number(partition);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

Result<std::int64_t> offset_at(const PositionRequest& request, const TopicExtent& extent) {
  switch (request.to.kind) {
    case PositionTarget::Kind::first: return -1;
    case PositionTarget::Kind::end: return extent.end_offset;
    case PositionTarget::Kind::time: break;
    case PositionTarget::Kind::offset:
      if (request.to.value >= extent.first_offset && request.to.value <= extent.end_offset)
        return request.to.value;
      return fail_usage(fmt::format("{} begins at {} and ends at {}: it has no offset {}",
                                    request.partition, extent.first_offset, extent.end_offset,
                                    request.to.value));
  }
  const auto offsets = ONCE_TRY(offsets_at_time(extent.topic_url, request.to.value));
  const std::size_t number = number_of(request.partition);
  return number < offsets.size() ? offsets[number] : extent.end_offset;
}

// Without a source nobody knows where the topic ends, and an offset is believed.
Result<std::int64_t> offset_of(const PositionRequest& request) {
  using Kind = PositionTarget::Kind;
  if (request.source_url.empty()) {
    if (request.to.kind == Kind::first) return -1;
    if (request.to.kind == Kind::offset) return request.to.value;
    return fail_usage(
        "--to end and --to TIME need --source URL: the topic is asked for its offsets");
  }
  const TopicExtents extents = ONCE_TRY(topic_extents(request.source_url));
  const auto found = extents.find(request.partition);
  if (found != extents.end()) return offset_at(request, found->second);
  return fail_usage(
      fmt::format("{} has no partition \"{}\"", shown_url(request.source_url), request.partition));
}

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

Result<TopicExtents> topic_extents(const std::string& source_url) {
  const audit::LookingUrl url = ONCE_TRY(audit::looking_url(source_url));
  TopicExtents extents;
  for (const std::string& topic_url : url.topics) {
    const TopicReport topic = ONCE_TRY(describe_topic_at(topic_url));
    for (std::size_t i = 0; i < topic.partitions.size(); ++i)
      extents[fmt::format("{}/{}", topic.name, i)] = {topic.partitions[i].first_offset,
                                                      topic.partitions[i].end_offset, topic_url};
  }
  return extents;
}

Result<Lags> lags_of(const ScopeRecord& scope, const TopicExtents& extents) {
  const auto next_of = [&](const PartitionRecord& record) {
    return std::max(record.position.offset, extents.at(record.partition).first_offset);
  };
  const auto lag_from = [&](const PartitionRecord& record, std::int64_t offset) {
    return std::max<std::int64_t>(extents.at(record.partition).end_offset - offset, 0);
  };
  Lags lags;
  std::map<std::string, std::map<std::int32_t, const PartitionRecord*>> behind;  // by topic
  for (const PartitionRecord& record : scope.partitions) {
    const auto extent = extents.find(record.partition);
    if (extent == extents.end()) continue;
    Lag& lag = lags[record.partition];
    lag = {lag_from(record, next_of(record)), record.position.offset > extent->second.end_offset};
    if (lag.messages > 0)
      behind[extent->second.topic_url][static_cast<std::int32_t>(number_of(record.partition))] =
          &record;
  }
  for (const auto& [topic_url, records] : behind) {
    PartitionOffsets from;
    for (const auto& [number, record] : records) from[number] = next_of(*record);
    for (const auto& [number, offset] : ONCE_TRY(first_messages_at(topic_url, std::move(from))))
      lags[records.at(number)->partition].messages = lag_from(*records.at(number), offset);
  }
  return lags;
}

Result<PositionChange> set_position(Books& books, const PositionRequest& request) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const ScopeRecord record = ONCE_TRY(books.records().describe(scope));
  const auto was = find(record, request.partition);
  if (!was)
    return fail_not_known(
        fmt::format("scope \"{}\" has no partition \"{}\"; `once position ls` lists those it has",
                    scope, request.partition));
  Repairs* repairs = ONCE_TRY(books.repairs());
  const std::int64_t offset = ONCE_TRY(offset_of(request));
  const SetPosition correction{request.partition, offset};
  if (!request.forced) ONCE_TRY(check_plausible(record, correction));
  ONCE_TRY(repairs->correct(scope, correction, request.reason));
  const bool checked =
      request.to.kind != PositionTarget::Kind::offset || !request.source_url.empty();
  return PositionChange{scope, *was, offset, checked};
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

Result<HorizonChange> release_horizon(Books& books, const std::string& reason) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  const ScopeRecord was = ONCE_TRY(books.records().describe(scope));
  Repairs* repairs = ONCE_TRY(books.repairs());
  ONCE_TRY(repairs->correct(scope, ReleaseHorizon{}, reason));
  return HorizonChange{scope, was.horizon_ms, was.horizon_ms, false};
}

Json horizon_json(const ScopeProgress& progress) {
  Json json = {{"scope", progress.scope},
               {"horizon_ms", progress.record.horizon_ms},
               {"held", progress.record.horizon_held},
               {"now_ms", progress.record.now_ms},
               {"partitions", Json::array()}};
  for (const PartitionRecord& partition : progress.record.partitions)
    json["partitions"].push_back(json_of(partition));
  return json;
}

Json position_json(const std::string& scope, const PartitionRecord& record,
                   const std::optional<Lag>& lag) {
  Json json = json_of(record);
  json["scope"] = scope;
  json["lag"] = lag ? Json(lag->messages) : Json();
  json["beyond_end"] = lag ? Json(lag->beyond_end) : Json();
  return json;
}

Json json_of(const PositionChange& change) {
  return {{"scope", change.scope},
          {"partition", change.was.partition},
          {"offset", change.offset},
          {"checked", change.checked},
          {"was", json_of(change.was)}};
}

Json json_of(const HorizonChange& change) {
  return {{"scope", change.scope},
          {"horizon_ms", change.horizon_ms},
          {"was_ms", change.was_ms},
          {"held", change.held}};
}

}  // namespace once::operate
