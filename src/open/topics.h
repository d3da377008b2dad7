// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topics.h"

namespace once {

// The functions of `Topics` for the adapter of the URL.
[[nodiscard]] Status create_topic_at(std::string_view url, const TopicRequest& request);
[[nodiscard]] Status delete_topic_at(std::string_view url);
[[nodiscard]] Result<TopicRepair> repair_topic_at(std::string_view url, bool apply);
[[nodiscard]] Result<TopicReport> describe_topic_at(std::string_view url);
[[nodiscard]] Result<TopicReport> inspect_topic_at(std::string_view url);
[[nodiscard]] Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url,
                                                                std::int64_t time_ms);
[[nodiscard]] Result<PartitionOffsets> first_messages_at(std::string_view url,
                                                         PartitionOffsets offsets);
[[nodiscard]] Result<std::vector<TopicReport>> list_topics_at(std::string_view broker_url);

}  // namespace once
