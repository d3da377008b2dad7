// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>

#include <string>
#include <string_view>
#include <vector>

namespace once {

// Topics by URL, whatever the broker: file:DIR/TOPIC, kafka://HOST:PORT/TOPIC. Creating and
// deleting are idempotent. What a broker does not tell about a topic is -1.
[[nodiscard]] Status create_topic_at(std::string_view url, const TopicOptions& options);
[[nodiscard]] Status delete_topic_at(std::string_view url);
[[nodiscard]] Result<TopicInfo> describe_topic_at(std::string_view url);
// Those of file:DIR or kafka://HOST:PORT.
[[nodiscard]] Result<std::vector<TopicInfo>> list_topics_at(std::string_view url);

}  // namespace once
