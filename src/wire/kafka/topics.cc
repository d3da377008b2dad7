// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "wire/kafka/client.h"

namespace once::kafka {
namespace {

struct Admin {
  Address address;
  std::shared_ptr<Client> client;
};

Result<Admin> open_admin(std::string_view url, Role role) {
  Admin admin;
  admin.address = ONCE_TRY(Address::parse(url, role));
  // What is not committed yet counts, too: otherwise a topic may look empty for a moment after a
  // producer was told that its messages are there.
  admin.client = ONCE_TRY(
      Client::make(RD_KAFKA_PRODUCER, admin.address, {{"isolation.level", "read_uncommitted"}}));
  ONCE_TRY(admin.client->reach());
  return admin;
}

rd_kafka_NewTopic_t* new_topic(const std::string& name, std::uint32_t partitions,
                               const TopicSettings& settings) {
  std::array<char, 256> text{};
  // The broker chooses how many replicas there are.
  rd_kafka_NewTopic_t* topic = rd_kafka_NewTopic_new(name.c_str(), static_cast<int>(partitions), -1,
                                                     text.data(), text.size());
  for (const auto& [setting, value] : settings)
    rd_kafka_NewTopic_set_config(topic, setting.c_str(), value.c_str());
  return topic;
}

Result<TopicDescription> describe(Client& client, const std::string& topic, std::uint32_t count) {
  TopicDescription description;
  description.name = topic;
  for (std::uint32_t i = 0; i < count; ++i) {
    Extent extent;
    const rd_kafka_resp_err_t code =
        rd_kafka_query_watermark_offsets(client.get(), topic.c_str(), static_cast<std::int32_t>(i),
                                         &extent.first_offset, &extent.end_offset, answer_ms);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      return fail(client.error(code, fmt::format("look at partition {} of {}", i, topic)));
    description.partitions.push_back(extent);
  }
  description.settings = ONCE_TRY(topic_settings(client, topic));
  return description;
}

Result<TopicDescription> describe(const Admin& admin) {
  const std::string& topic = admin.address.topic;
  return describe(*admin.client, topic, ONCE_TRY(admin.client->partition_count(topic)));
}

// A topic that was just made takes a moment to be everywhere.
Status wait_until_usable(const Admin& admin) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(answer_ms);
  for (;;) {
    const auto found = describe(admin);
    if (found) return {};
    const bool may_come = found.error().remedy == Remedy::retry || found.error().tag == "missing";
    if (!may_come || std::chrono::steady_clock::now() > deadline) return fail(found.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What was asked for is there already, or something else is.
Status check_same(const Admin& admin, std::uint32_t partitions, const TopicSettings& settings) {
  const TopicDescription there = ONCE_TRY(describe(admin));
  const auto refuse = [&](const std::string& what) {
    return fail(Remedy::stop, "exists",
                fmt::format("{} exists with {}; delete it first, or ask for what it has",
                            admin.address.where(), what));
  };
  if (there.partitions.size() != partitions)
    return refuse(fmt::format("{} partitions, not {}", there.partitions.size(), partitions));
  for (const auto& [name, value] : settings) {
    const auto found = there.settings.find(name);
    if (found != there.settings.end() && found->second != value)
      return refuse(fmt::format("{}={}, not {}", name, found->second, value));
  }
  return {};
}

}  // namespace

Status create_topic(std::string_view url, std::uint32_t partitions, const TopicSettings& settings) {
  const Admin admin = ONCE_TRY(open_admin(url, Role::sink));
  rd_kafka_NewTopic_t* topic = new_topic(admin.address.topic, partitions, settings);
  const auto event = admin.client->ask("create the topic", [&](rd_kafka_queue_t* answers) {
    rd_kafka_CreateTopics(admin.client->get(), &topic, 1, nullptr, answers);
  });
  rd_kafka_NewTopic_destroy(topic);
  if (!event) return fail(event.error());
  std::size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  const rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return wait_until_usable(admin);
  if (code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    return check_same(admin, partitions, settings);
  return fail(admin.client->error(code, "create the topic",
                                  rd_kafka_topic_result_error_string(results[0])));
}

Status delete_topic(std::string_view url) {
  const Admin admin = ONCE_TRY(open_admin(url, Role::sink));
  rd_kafka_DeleteTopic_t* topic = rd_kafka_DeleteTopic_new(admin.address.topic.c_str());
  const auto event = admin.client->ask("delete the topic", [&](rd_kafka_queue_t* answers) {
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

Result<TopicDescription> describe_topic(std::string_view url) {
  return describe(ONCE_TRY(open_admin(url, Role::sink)));
}

Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url, std::int64_t time_ms) {
  const Admin admin = ONCE_TRY(open_admin(url, Role::sink));
  const TopicDescription topic = ONCE_TRY(describe(admin));
  const int count = static_cast<int>(topic.partitions.size());
  const PartitionList times(rd_kafka_topic_partition_list_new(count));
  for (int i = 0; i < count; ++i)
    rd_kafka_topic_partition_list_add(times.get(), topic.name.c_str(), i)->offset = time_ms;
  const rd_kafka_resp_err_t code =
      rd_kafka_offsets_for_times(admin.client->get(), times.get(), answer_ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(admin.client->error(code, fmt::format("find a time in {}", topic.name)));
  std::vector<std::int64_t> offsets;
  for (int i = 0; i < count; ++i) {
    const rd_kafka_topic_partition_t& found = times->elems[i];
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR)
      return fail(admin.client->error(found.err, fmt::format("find a time in {}", topic.name)));
    offsets.push_back(found.offset >= 0 ? found.offset
                                        : topic.partitions[static_cast<std::size_t>(i)].end_offset);
  }
  return offsets;
}

Result<Offsets> first_messages(std::string_view url, Offsets offsets) {
  const Address address = ONCE_TRY(Address::parse(url, Role::sink));
  const auto client =
      ONCE_TRY(Client::make(RD_KAFKA_CONSUMER, address,
                            {{"enable.partition.eof", "true"}, {"fetch.message.max.bytes", "1"}}));
  ONCE_TRY(client->reach());
  const std::unique_ptr<rd_kafka_topic_t, Free<rd_kafka_topic_destroy>> topic(
      rd_kafka_topic_new(client->get(), address.topic.c_str(), nullptr));
  const Queue queue(rd_kafka_queue_new(client->get()));
  std::set<std::int32_t> waiting;
  for (const auto& [partition, offset] : offsets)
    if (rd_kafka_consume_start_queue(topic.get(), partition, offset, queue.get()) == 0)
      waiting.insert(partition);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(answer_ms);
  while (!waiting.empty() && std::chrono::steady_clock::now() < deadline) {
    const std::unique_ptr<rd_kafka_message_t, Free<rd_kafka_message_destroy>> found(
        rd_kafka_consume_queue(queue.get(), 100));
    if (!found || !waiting.contains(found->partition)) continue;
    const bool is_known =
        found->err == RD_KAFKA_RESP_ERR_NO_ERROR || found->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (!is_known) continue;  // librdkafka goes on by itself
    offsets[found->partition] = std::max(offsets[found->partition], found->offset);
    waiting.erase(found->partition);
  }
  for (const auto& [partition, offset] : offsets)
    (void)rd_kafka_consume_stop(topic.get(), partition);
  return offsets;
}

Result<std::vector<TopicDescription>> describe_topics(std::string_view url) {
  const Admin admin = ONCE_TRY(open_admin(url, Role::cluster));
  const Metadata metadata = ONCE_TRY(admin.client->topics());
  std::vector<TopicDescription> topics;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic_t& topic = metadata->topics[i];
    const std::string name = topic.topic;
    if (name.starts_with("__")) continue;  // Kafka's own
    topics.push_back(
        ONCE_TRY(describe(*admin.client, name, static_cast<std::uint32_t>(topic.partition_cnt))));
  }
  std::sort(topics.begin(), topics.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return topics;
}

}  // namespace once::kafka
