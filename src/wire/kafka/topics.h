// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>
#include <once/result.h>

#include <string>
#include <string_view>
#include <vector>

namespace once::kafka {

// Topics of a cluster, as those of the embedded log (include/once/log.h): asked twice, it happens
// once. What Kafka does not tell is -1.
[[nodiscard]] Status create_topic(std::string_view url, const TopicOptions& options);
[[nodiscard]] Status delete_topic(std::string_view url);
[[nodiscard]] Result<std::vector<std::string>> list_topics(std::string_view url);
[[nodiscard]] Result<TopicInfo> describe_topic(std::string_view url);

}  // namespace once::kafka
