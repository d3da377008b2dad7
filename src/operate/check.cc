// SPDX-License-Identifier: Apache-2.0
#include "operate/check.h"

#include <fmt/format.h>
#include <once/records.h>

#include "model/ledger.h"
#include "open/topics.h"
#include "operate/progress.h"

namespace once::operate {
namespace {

Status check_destination_of(const Destination& destination) {
  const auto topic = describe_topic_at(destination.url);
  if (topic) return {};
  Error error = topic.error();
  error.text = fmt::format("{}: {}", destination.origin, error.text);
  return fail(std::move(error));
}

Status check_position(const std::string& scope, const PartitionRecord& record,
                      const TopicExtents& extents) {
  const auto extent = extents.find(record.partition);
  const std::int64_t offset = record.position.offset;
  if (extent == extents.end() || offset < 0) return {};
  const std::int64_t first = extent->second.first_offset;
  const std::int64_t end = extent->second.end_offset;
  if (offset >= first && offset <= end) return {};
  const std::string text =
      offset < first
          ? fmt::format("scope \"{}\" goes on at {} of {}, which begins at {}: messages were lost",
                        scope, offset, record.partition, first)
          : fmt::format(
                "scope \"{}\" goes on at {} of {}, which ends at {}: it is not the topic "
                "that was read before",
                scope, offset, record.partition, end);
  return fail(
      with_position_hint({Remedy::stop, "gone", text, std::nullopt}, scope, record.partition));
}

}  // namespace

Status check_job(const Job& job, const std::string& source_url) {
  for (const Destination& destination : job.destinations)
    ONCE_TRY(check_destination_of(destination));
  if (job.store.records() == nullptr) return {};
  const ScopeRecord scope = ONCE_TRY(job.store.records()->describe(job.options.scope));
  if (scope.partitions.empty()) return {};
  const TopicExtents extents = ONCE_TRY(topic_extents(source_url));
  for (const PartitionRecord& record : scope.partitions)
    ONCE_TRY(check_position(job.options.scope, record, extents));
  return {};
}

}  // namespace once::operate
