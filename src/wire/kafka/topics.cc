// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "wire/kafka/client.h"

namespace once::kafka {
namespace {

constexpr int answer_ms = 10'000;

using Event = std::unique_ptr<rd_kafka_event_t, Free<rd_kafka_event_destroy>>;
using Metadata = std::unique_ptr<const rd_kafka_metadata_t, Free<rd_kafka_metadata_destroy>>;

struct Admin {
  Address address;
  std::shared_ptr<Client> client;
};

Result<Admin> open_admin(std::string_view url, Role role = Role::sink) {
  Admin admin;
  admin.address = ONCE_TRY(Address::parse(url, role));
  admin.client = ONCE_TRY(Client::make(RD_KAFKA_PRODUCER, admin.address, {}));
  return admin;
}

// Asks the cluster and waits for the answer.
Result<Event> ask(const Admin& admin, std::string_view what,
                  const std::function<void(rd_kafka_queue_t*)>& request) {
  const Queue answers(rd_kafka_queue_new(admin.client->get()));
  request(answers.get());
  Event event(rd_kafka_queue_poll(answers.get(), answer_ms));
  rd_kafka_poll(admin.client->get(), 0);  // hear complaints
  if (!event) return fail(admin.client->error(RD_KAFKA_RESP_ERR__TIMED_OUT, what));
  const rd_kafka_resp_err_t code = rd_kafka_event_error(event.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(admin.client->error(code, what, rd_kafka_event_error_string(event.get())));
  return event;
}

rd_kafka_NewTopic_t* new_topic(const std::string& name, const TopicOptions& options) {
  std::array<char, 256> text{};
  // The broker chooses how many replicas there are.
  rd_kafka_NewTopic_t* topic = rd_kafka_NewTopic_new(
      name.c_str(), static_cast<int>(options.partitions), -1, text.data(), text.size());
  const TopicOptions usual;
  const auto set = [&](const char* setting, std::int64_t value, std::int64_t usual_value) {
    if (value != usual_value)
      rd_kafka_NewTopic_set_config(topic, setting, fmt::format("{}", value).c_str());
  };
  set("segment.bytes", options.segment_bytes_max, usual.segment_bytes_max);
  set("retention.ms", options.retention_ms, usual.retention_ms);
  set("retention.bytes", options.retention_bytes, usual.retention_bytes);
  return topic;
}

Result<Metadata> metadata_of(const Admin& admin) {
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t code =
      rd_kafka_metadata(admin.client->get(), 1, nullptr, &metadata, answer_ms);
  rd_kafka_poll(admin.client->get(), 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return fail(admin.client->error(code, "list the topics"));
  return Metadata(metadata);
}

Result<TopicInfo> describe(const Admin& admin) {
  TopicInfo info;
  info.name = admin.address.topic;
  info.options.partitions = ONCE_TRY(admin.client->partition_count(answer_ms));
  for (std::uint32_t i = 0; i < info.options.partitions; ++i) {
    PartitionInfo partition{i, 0, 0, -1, 0, 0};
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        admin.client->get(), admin.address.topic.c_str(), static_cast<std::int32_t>(i),
        &partition.first_offset, &partition.end_offset, answer_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      return fail(admin.client->error(code, fmt::format("look at partition {}", i)));
    info.partitions.push_back(partition);
  }
  return info;
}

// A topic that was just made takes a moment to be everywhere.
Status wait_until_usable(const Admin& admin) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(answer_ms);
  for (;;) {
    const auto info = describe(admin);
    if (info) return {};
    const bool may_come = info.error().remedy == Remedy::retry || info.error().tag == "missing";
    if (!may_come || std::chrono::steady_clock::now() > deadline) return fail(info.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

Status create_topic(std::string_view url, const TopicOptions& options) {
  if (options.gaps != GapPolicy::refuse)
    return fail(Remedy::stop, "config",
                "a topic of Kafka cannot hold or accept gaps: its producers send in order");
  const Admin admin = ONCE_TRY(open_admin(url));
  rd_kafka_NewTopic_t* topic = new_topic(admin.address.topic, options);
  const auto event = ask(admin, "create the topic", [&](rd_kafka_queue_t* answers) {
    rd_kafka_CreateTopics(admin.client->get(), &topic, 1, nullptr, answers);
  });
  rd_kafka_NewTopic_destroy(topic);
  if (!event) return fail(event.error());
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  const rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return wait_until_usable(admin);
  if (code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    return fail(admin.client->error(code, "create the topic",
                                    rd_kafka_topic_result_error_string(results[0])));
  const std::uint32_t there = ONCE_TRY(admin.client->partition_count(answer_ms));
  if (there == options.partitions) return {};
  return fail(Remedy::stop, "exists",
              fmt::format("{} exists with {} partitions, not {}", admin.address.where(), there,
                          options.partitions));
}

Status delete_topic(std::string_view url) {
  const Admin admin = ONCE_TRY(open_admin(url));
  rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(admin.address.topic.c_str());
  const auto event = ask(admin, "delete the topic", [&](rd_kafka_queue_t* answers) {
    rd_kafka_DeleteTopics(admin.client->get(), &topic, 1, nullptr, answers);
  });
  rd_kafka_DeleteTopic_destroy(topic);
  if (!event) return fail(event.error());
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event->get()), &count);
  const rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return {};
  return fail(admin.client->error(code, "delete the topic"));
}

Result<std::vector<std::string>> list_topics(std::string_view url) {
  // A cluster is named as a topic is, without the topic.
  const Admin admin = ONCE_TRY(open_admin(std::string(url) + "/*"));
  const Metadata metadata = ONCE_TRY(metadata_of(admin));
  std::vector<std::string> names;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const std::string_view name = metadata->topics[i].topic;
    if (!name.starts_with("__")) names.emplace_back(name);  // Kafka's own
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<TopicInfo> describe_topic(std::string_view url) {
  return describe(ONCE_TRY(open_admin(url)));
}

}  // namespace once::kafka
