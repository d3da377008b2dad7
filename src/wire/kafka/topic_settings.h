// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <map>
#include <string>

#include "wire/kafka/client.h"

namespace once::kafka {

// The settings of a topic, by Kafka's names.
using TopicSettings = std::map<std::string, std::string, std::less<>>;

// Asks the cluster for them; none where it does not tell, or not us.
[[nodiscard]] Result<TopicSettings> topic_settings(Client& client, const std::string& topic,
                                                   int wait_ms = answer_ms);

// In the same way those of a broker.
[[nodiscard]] Result<TopicSettings> broker_settings(Client& client, int wait_ms = answer_ms);

// Removes Kafka all but the newest message of a key?
bool is_compacted(const TopicSettings& settings);

}  // namespace once::kafka
