// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/topic_settings.h"

#include <string_view>

namespace once::kafka {
namespace {

constexpr std::string_view what = "read the settings of the topic";

Result<TopicSettings> read(const Client& client, const rd_kafka_event_t& event) {
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

Result<TopicSettings> ask(Client& client, const std::string& topic, int wait_ms) {
  rd_kafka_ConfigResource_t* resource =
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str());
  const auto event = client.ask(
      what,
      [&](rd_kafka_queue_t* answers) {
        rd_kafka_DescribeConfigs(client.get(), &resource, 1, nullptr, answers);
      },
      wait_ms);
  rd_kafka_ConfigResource_destroy(resource);
  if (!event) return fail(event.error());
  return read(client, *rd_kafka_event_DescribeConfigs_result(event->get()));
}

}  // namespace

Result<TopicSettings> topic_settings(Client& client, const std::string& topic, int wait_ms) {
  auto settings = ask(client, topic, wait_ms);
  if (settings) return settings;
  const std::string& tag = settings.error().tag;
  if (tag == "denied" || tag == "config") return TopicSettings{};  // no right, or an old broker
  return settings;
}

bool is_compacted(const TopicSettings& settings) {
  const auto policy = settings.find("cleanup.policy");
  return policy != settings.end() && policy->second.find("compact") != std::string::npos;
}

}  // namespace once::kafka
