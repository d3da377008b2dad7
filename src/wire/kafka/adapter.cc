// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/adapter.h"

#include <fmt/format.h>
#include <once/open.h>

#include <array>
#include <charconv>

#include "wire/kafka/library.h"
#include "wire/kafka/look.h"
#include "wire/kafka/topics.h"

namespace once::kafka {
namespace {

constexpr std::array<std::string_view, 1> schemes{"kafka"};
constexpr std::array<std::string_view, 3> reader_parameters{"group", "member", "start"};
constexpr std::uint16_t usual_port = 9092;

std::optional<std::int64_t> number_in(const TopicSettings& settings, std::string_view name) {
  const auto found = settings.find(name);
  std::int64_t number = 0;
  if (found == settings.end()) return std::nullopt;
  const char* end = found->second.data() + found->second.size();
  if (std::from_chars(found->second.data(), end, number).ptr != end) return std::nullopt;
  return number;
}

TopicReport report_of(const TopicDescription& topic) {
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
  for (const Extent& partition : topic.partitions)
    report.partitions.push_back(
        {.first_offset = partition.first_offset, .end_offset = partition.end_offset});
  return report;
}

class KafkaTopics final : public Topics {
 public:
  Status create(std::string_view url, const TopicRequest& request) const override {
    if (request.gaps.value_or(GapPolicy::refuse) != GapPolicy::refuse)
      return fail(Remedy::stop, "config",
                  "a topic of Kafka cannot hold or accept gaps: its producers send in order");
    TopicSettings settings;
    const auto add = [&](const char* name, const std::optional<std::int64_t>& value) {
      if (value) settings[name] = fmt::format("{}", *value);
    };
    add("segment.bytes", request.segment_bytes_max);
    add("retention.ms", request.retention_ms);
    add("retention.bytes", request.retention_bytes);
    return create_topic(url, request.partitions, settings);
  }

  Status remove(std::string_view url) const override { return delete_topic(url); }

  Result<TopicReport> describe(std::string_view url) const override {
    return report_of(ONCE_TRY(describe_topic(url)));
  }

  Result<std::vector<TopicReport>> list(std::string_view broker_url) const override {
    std::vector<TopicReport> topics;
    for (const TopicDescription& topic : ONCE_TRY(describe_topics(broker_url)))
      topics.push_back(report_of(topic));
    return topics;
  }

  Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url,
                                                    std::int64_t time_ms) const override {
    return kafka::offsets_at_time(url, time_ms);
  }

  Result<PartitionOffsets> first_messages(std::string_view url,
                                          PartitionOffsets offsets) const override {
    return kafka::first_messages(url, std::move(offsets));
  }
};

// Without a group all partitions are those of the one process that reads.
bool has_group(const Url& url) { return url.parameter("group") != nullptr; }

std::optional<TopicAddress> topic_address(const Url& url) {
  TopicAddress address{.brokers = broker_endpoints(url, usual_port)};
  for (std::string& name : topic_names(url.path)) address.topics.push_back({std::move(name)});
  return address;
}

}  // namespace

const Adapter& adapter() {
  static const KafkaTopics topics;
  static const Adapter adapter{.schemes = schemes,
                               .source = open_kafka_source,
                               .source_to_look = open_source_to_look,
                               .shares_out = has_group,
                               .group_parameter = "group",
                               .reader_parameters = reader_parameters,
                               .sink = open_kafka_sink,
                               .sink_traits = kafka_sink_traits,
                               .sink_check = check_sink,
                               .topics = &topics,
                               .topic_address = topic_address,
                               .advice = library_advice};
  return adapter;
}

}  // namespace once::kafka
