// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace once {

// What a new topic is asked to be. What is not set, its broker chooses.
struct TopicWish {
  std::uint32_t partitions = 1;
  std::optional<std::int64_t> segment_bytes_max = std::nullopt;
  std::optional<std::int64_t> retention_ms = std::nullopt;
  std::optional<std::int64_t> retention_bytes = std::nullopt;
  std::optional<GapPolicy> gaps = std::nullopt;
};

struct PartitionReport {
  std::int64_t first_offset = 0;
  std::int64_t end_offset = 0;
  // Only of the embedded log.
  std::int64_t bytes = 0;
  std::uint32_t segments = 0;
  std::uint32_t producers = 0;
  std::string damage = {};  // not empty: what is wrong with it, and the figures are not known
};

// What is known of a topic; what its broker does not tell is not set.
struct TopicReport {
  std::string name;
  bool embedded = false;  // every offset is a message; elsewhere there are at most so many
  std::optional<std::int64_t> segment_bytes_max = std::nullopt;
  std::optional<std::int64_t> retention_ms = std::nullopt;
  std::optional<std::int64_t> retention_bytes = std::nullopt;
  std::optional<GapPolicy> gaps = std::nullopt;
  std::vector<std::pair<std::string, std::string>> more = {};  // by the broker's own names
  std::vector<PartitionReport> partitions = {};
  std::string damage = {};  // not empty: nothing else is known of the topic
};

// Topics by URL, whatever the broker: file:DIR/TOPIC, kafka://HOST:PORT/TOPIC. Creating and
// deleting are idempotent.
[[nodiscard]] Status create_topic_at(std::string_view url, const TopicWish& wish);
[[nodiscard]] Status delete_topic_at(std::string_view url);
// See repair_topic of once/log.h; Kafka repairs itself.
[[nodiscard]] Result<TopicRepair> repair_topic_at(std::string_view url, bool apply);
// "corrupt" when a partition is damaged.
[[nodiscard]] Result<TopicReport> describe_topic_at(std::string_view url);
// The same, but says what is damaged.
[[nodiscard]] Result<TopicReport> inspect_topic_at(std::string_view url);
// Of each partition, the offset of the first message with this timestamp or a later one; the end of
// the partition if there is none. Messages need not be in the order of their timestamps.
[[nodiscard]] Result<std::vector<std::int64_t>> offsets_at_time(std::string_view url,
                                                                std::int64_t time_ms);
// Of each of these partitions, where the first message at or behind an offset is, or the end: in
// Kafka, offsets that are only the ends of transactions are skipped.
using PartitionOffsets = std::map<std::int32_t, std::int64_t>;
[[nodiscard]] Result<PartitionOffsets> first_messages_at(std::string_view url,
                                                         PartitionOffsets offsets);
// Those of file:DIR or kafka://HOST:PORT.
[[nodiscard]] Result<std::vector<TopicReport>> list_topics_at(std::string_view url);

}  // namespace once
