// SPDX-License-Identifier: Apache-2.0
#include "open/topics.h"

#include <utility>

#include "open/adapters.h"

namespace once {
namespace {

Result<const Topics*> topics_of(std::string_view url) {
  const auto adapter = adapter_of(
      url, "topic", [](const Adapter& candidate) { return candidate.topics != nullptr; });
  if (!adapter) return fail(adapter.error());
  return (*adapter)->topics;
}

}  // namespace

Status create_topic_at(std::string_view url, const TopicRequest& request) {
  return ONCE_TRY(topics_of(url))->create(url, request);
}

Status delete_topic_at(std::string_view url) { return ONCE_TRY(topics_of(url))->remove(url); }

Result<TopicRepair> repair_topic_at(std::string_view url, bool apply) {
  return ONCE_TRY(topics_of(url))->repair(url, apply);
}

Result<TopicReport> describe_topic_at(std::string_view url) {
  return ONCE_TRY(topics_of(url))->describe(url);
}

Result<TopicReport> inspect_topic_at(std::string_view url) {
  return ONCE_TRY(topics_of(url))->inspect(url);
}

Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url, std::int64_t time_ms) {
  return ONCE_TRY(topics_of(url))->offsets_at_time(url, time_ms);
}

Result<PartitionOffsets> first_messages_at(std::string_view url, PartitionOffsets offsets) {
  return ONCE_TRY(topics_of(url))->first_messages(url, std::move(offsets));
}

Result<std::vector<TopicReport>> list_topics_at(std::string_view broker_url) {
  return ONCE_TRY(topics_of(broker_url))->list(broker_url);
}

}  // namespace once
