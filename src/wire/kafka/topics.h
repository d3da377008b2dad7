// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/kafka/topic_settings.h"

namespace once::kafka {

// Where a partition begins and ends. Not every offset between is a message: some are the ends of
// transactions, and compaction leaves holes.
struct Extent {
  std::int64_t first_offset = 0;
  std::int64_t end_offset = 0;
};

struct TopicDescription {
  std::string name;
  std::vector<Extent> partitions;
  TopicSettings settings;
};

// Topics of a cluster. Creating and deleting are idempotent; a topic that is there with other
// partitions or settings than asked for is an error.
[[nodiscard]] Status create_topic(std::string_view url, std::uint32_t partitions,
                                  const TopicSettings& settings);
[[nodiscard]] Status delete_topic(std::string_view url);
[[nodiscard]] Result<TopicDescription> describe_topic(std::string_view url);
// Of each partition, the offset of the first message with this timestamp or a later one; its end if
// there is none.
[[nodiscard]] Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url,
                                                                std::int64_t time_ms);
// Of each of these partitions, the offset of the first message at or behind an offset; the
// partition's end if nothing is there but the ends of transactions. A partition whose broker does
// not answer in time keeps its offset.
using Offsets = std::map<std::int32_t, std::int64_t>;
[[nodiscard]] Result<Offsets> first_messages(std::string_view url, Offsets offsets);
// All but Kafka's own, by name; the URL is that of the cluster.
[[nodiscard]] Result<std::vector<TopicDescription>> describe_topics(std::string_view url);

}  // namespace once::kafka
