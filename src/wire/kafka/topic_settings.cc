// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/topic_settings.h"

#include <string_view>

namespace once::kafka {
namespace {

Result<TopicSettings> read(const Client& client, const rd_kafka_event_t& event,
                           std::string_view what) {
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** resources =
      rd_kafka_DescribeConfigs_result_resources(&event, &count);
  if (count != 1) return fail(client.error(RD_KAFKA_RESP_ERR__FAIL, what));
  const rd_kafka_resp_err_t code = rd_kafka_ConfigResource_error(resources[0]);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return fail(client.error(code, what, rd_kafka_ConfigResource_error_string(resources[0])));
  TopicSettings settings;
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(resources[0], &count);
  for (std::size_t i = 0; i < count; ++i)
    if (const char* value = rd_kafka_ConfigEntry_value(entries[i]))
      settings[rd_kafka_ConfigEntry_name(entries[i])] = value;
  return settings;
}

Result<TopicSettings> ask(Client& client, rd_kafka_ResourceType_t type, const std::string& name,
                          std::string_view what, int wait_ms) {
  rd_kafka_ConfigResource_t* resource = rd_kafka_ConfigResource_new(type, name.c_str());
  const auto event = client.ask(
      what,
      [&](rd_kafka_queue_t* answers) {
        rd_kafka_DescribeConfigs(client.get(), &resource, 1, nullptr, answers);
      },
      wait_ms);
  rd_kafka_ConfigResource_destroy(resource);
  if (!event) return fail(event.error());
  return read(client, *rd_kafka_event_DescribeConfigs_result(event->get()), what);
}

// Without the right to know, or of an old broker: nothing.
Result<TopicSettings> as_far_as_told(Result<TopicSettings> settings) {
  if (settings) return settings;
  const std::string& tag = settings.error().tag;
  if (tag == "denied" || tag == "config") return TopicSettings{};
  return settings;
}

}  // namespace

Result<TopicSettings> topic_settings(Client& client, const std::string& topic, int wait_ms) {
  return as_far_as_told(
      ask(client, RD_KAFKA_RESOURCE_TOPIC, topic, "read the settings of the topic", wait_ms));
}

Result<TopicSettings> broker_settings(Client& client, int wait_ms) {
  const std::int32_t broker = rd_kafka_controllerid(client.get(), wait_ms);
  if (broker < 0) return TopicSettings{};
  return as_far_as_told(ask(client, RD_KAFKA_RESOURCE_BROKER, std::to_string(broker),
                            "read the settings of the broker", wait_ms));
}

bool is_compacted(const TopicSettings& settings) {
  const auto policy = settings.find("cleanup.policy");
  return policy != settings.end() && policy->second.find("compact") != std::string::npos;
}

}  // namespace once::kafka
