// SPDX-License-Identifier: Apache-2.0
#include "open/topics.h"

#include <array>
#include <charconv>
#include <map>

#include "base/url.h"
#include "open/log_address.h"
#ifdef ONCE_WITH_KAFKA
#include "wire/kafka/topics.h"
#endif

#include <fmt/format.h>

namespace once {
namespace {

constexpr std::array schemes = std::to_array<std::string_view>({
    "file",
#ifdef ONCE_WITH_KAFKA
    "kafka",
#endif
});

Result<Url> topic_url(std::string_view text) {
  Url url = ONCE_TRY(parse_url(text));
  ONCE_TRY(require_scheme(url, schemes, "topic"));
  if (url.scheme == "file") ONCE_TRY(require_parameters(url, {}));
  return url;
}

TopicReport report_of(const TopicInfo& info) {
  TopicReport report{.name = info.name,
                     .embedded = true,
                     .segment_bytes_max = info.options.segment_bytes_max,
                     .retention_ms = info.options.retention_ms,
                     .retention_bytes = info.options.retention_bytes,
                     .gaps = info.options.gaps};
  for (const PartitionInfo& partition : info.partitions)
    report.partitions.push_back({partition.first_offset, partition.end_offset, partition.bytes,
                                 partition.segments, partition.producers, partition.damage});
  return report;
}

// The log has no index by time: it is read, up to the first message that is late enough.
Result<std::vector<std::int64_t>> log_offsets_at_time(const LogAddress& address,
                                                      std::int64_t time_ms) {
  const TopicInfo info = ONCE_TRY(describe_topic(address.directory, address.topic));
  std::vector<std::int64_t> offsets;
  for (const PartitionInfo& partition : info.partitions) offsets.push_back(partition.end_offset);
  std::map<std::string, std::size_t, std::less<>> open;
  LogSourceOptions options;
  options.stop_at_end = true;
  const auto source = ONCE_TRY(open_log_source(address.directory, address.topic, options));
  for (std::size_t i = 0; i < offsets.size(); ++i)
    open.emplace(fmt::format("{}/{}", address.topic, i), i);
  while (!open.empty()) {
    constexpr std::size_t count_max = 1000;
    constexpr std::int64_t wait_ms = 1000;
    const Batch batch = ONCE_TRY(source->poll(count_max, wait_ms));
    if (batch.event == Batch::Event::end) break;
    if (batch.event == Batch::Event::assigned) ONCE_TRY(source->seek(batch.partition, -1));
    const auto at = open.find(batch.partition);
    if (batch.event != Batch::Event::messages || at == open.end()) continue;
    for (const Delivery& delivery : batch.deliveries) {
      if (delivery.timestamp_ms < time_ms) continue;
      offsets[at->second] = delivery.offset;
      open.erase(at);
      break;
    }
  }
  return offsets;
}

#ifdef ONCE_WITH_KAFKA

Status create_kafka_topic(std::string_view url, const TopicWish& wish) {
  if (wish.gaps.value_or(GapPolicy::refuse) != GapPolicy::refuse)
    return fail(Remedy::stop, "config",
                "a topic of Kafka cannot hold or accept gaps: its producers send in order");
  kafka::TopicSettings settings;
  const auto ask_for = [&](const char* name, const std::optional<std::int64_t>& value) {
    if (value) settings[name] = fmt::format("{}", *value);
  };
  ask_for("segment.bytes", wish.segment_bytes_max);
  ask_for("retention.ms", wish.retention_ms);
  ask_for("retention.bytes", wish.retention_bytes);
  return kafka::create_topic(url, wish.partitions, settings);
}

std::optional<std::int64_t> number_in(const kafka::TopicSettings& settings, std::string_view name) {
  const auto found = settings.find(name);
  std::int64_t number = 0;
  if (found == settings.end()) return std::nullopt;
  const char* end = found->second.data() + found->second.size();
  if (std::from_chars(found->second.data(), end, number).ptr != end) return std::nullopt;
  return number;
}

TopicReport report_of(const kafka::TopicDescription& topic) {
  TopicReport report{.name = topic.name,
                     .segment_bytes_max = number_in(topic.settings, "segment.bytes")};
  const auto policy = topic.settings.find("cleanup.policy");
  // Otherwise nothing is removed for its age.
  if (policy != topic.settings.end() && policy->second.find("delete") != std::string::npos) {
    report.retention_ms = number_in(topic.settings, "retention.ms");
    report.retention_bytes = number_in(topic.settings, "retention.bytes");
  }
  for (const char* name : {"cleanup.policy", "message.timestamp.type", "min.insync.replicas"})
    if (const auto found = topic.settings.find(name); found != topic.settings.end())
      report.more.emplace_back(found->first, found->second);
  for (const kafka::Extent& partition : topic.partitions)
    report.partitions.push_back(
        {.first_offset = partition.first_offset, .end_offset = partition.end_offset});
  return report;
}

#endif

}  // namespace

Status create_topic_at(std::string_view text, const TopicWish& wish) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return create_kafka_topic(text, wish);
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  TopicOptions options;
  options.partitions = wish.partitions;
  options.segment_bytes_max = wish.segment_bytes_max.value_or(options.segment_bytes_max);
  options.retention_ms = wish.retention_ms.value_or(options.retention_ms);
  options.retention_bytes = wish.retention_bytes.value_or(options.retention_bytes);
  options.gaps = wish.gaps.value_or(options.gaps);
  return create_topic(address.directory, address.topic, options);
}

Status delete_topic_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::delete_topic(text);
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return delete_topic(address.directory, address.topic);
}

Result<TopicRepair> repair_topic_at(std::string_view text, bool apply) {
  const Url url = ONCE_TRY(topic_url(text));
  if (url.scheme != "file")
    return fail(Remedy::stop, "config", "only topics of the embedded log are repaired here");
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return repair_topic(address.directory, address.topic, apply);
}

Result<TopicReport> describe_topic_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return report_of(ONCE_TRY(kafka::describe_topic(text)));
#endif
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return report_of(ONCE_TRY(describe_topic(address.directory, address.topic)));
}

Result<TopicReport> inspect_topic_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
  if (url.scheme != "file") return describe_topic_at(text);
  const LogAddress address = ONCE_TRY(log_address_of(url));
  return report_of(ONCE_TRY(inspect_topic(address.directory, address.topic)));
}

Result<std::vector<std::int64_t>> offsets_at_time(std::string_view text, std::int64_t time_ms) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::offsets_at_time(text, time_ms);
#endif
  return log_offsets_at_time(ONCE_TRY(log_address_of(url)), time_ms);
}

Result<PartitionOffsets> first_messages_at(std::string_view text, PartitionOffsets offsets) {
  const Url url = ONCE_TRY(topic_url(text));
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") return kafka::first_messages(text, std::move(offsets));
#endif
  return offsets;  // every offset is a message
}

Result<std::vector<TopicReport>> list_topics_at(std::string_view text) {
  const Url url = ONCE_TRY(topic_url(text));
  std::vector<TopicReport> topics;
#ifdef ONCE_WITH_KAFKA
  if (url.scheme == "kafka") {
    for (const kafka::TopicDescription& topic : ONCE_TRY(kafka::describe_topics(text)))
      topics.push_back(report_of(topic));
    return topics;
  }
#endif
  const std::string directory = url.path.empty() ? "." : url.path;
  for (const std::string& name : ONCE_TRY(list_topics(directory))) {
    const auto info = inspect_topic(directory, name);
    if (info)
      topics.push_back(report_of(*info));
    else if (info.error().tag == "corrupt")
      topics.push_back({.name = name, .embedded = true, .damage = info.error().text});
    else
      return fail(info.error());
  }
  return topics;
}

}  // namespace once
