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
struct TopicRequest {
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

using PartitionOffsets = std::map<std::int32_t, std::int64_t>;

// The topics of a broker, for people and tools: no pipeline needs it. The URLs are those of topics,
// except that of `list`, which is the URL of the broker. Any thread may call it.
class Topics {
 public:
  virtual ~Topics() = default;

  // Idempotent; a topic that exists with other settings than requested is an error ("exists").
  [[nodiscard]] virtual Status create(std::string_view url, const TopicRequest& request) const = 0;
  // Idempotent.
  [[nodiscard]] virtual Status remove(std::string_view url) const = 0;
  // "missing" if there is no such topic, "corrupt" if a partition is damaged.
  [[nodiscard]] virtual Result<TopicReport> describe(std::string_view url) const = 0;
  [[nodiscard]] virtual Result<std::vector<TopicReport>> list(
      std::string_view broker_url) const = 0;

  // As `describe`, but damage is reported and is not an error.
  [[nodiscard]] virtual Result<TopicReport> inspect(std::string_view url) const;
  // Of each partition, the offset of the first message with this timestamp or a later one; the end
  // of the partition if there is none. Messages need not be in the order of their timestamps.
  // Default: an error ("config"), for brokers without offsets.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> offsets_at_time(
      std::string_view url, std::int64_t time_ms) const;
  // Of each of these partitions, where the first message at or behind an offset is, or the end: in
  // Kafka, offsets that are only the ends of transactions are skipped. Default: every offset is a
  // message.
  [[nodiscard]] virtual Result<PartitionOffsets> first_messages(std::string_view url,
                                                                PartitionOffsets offsets) const;
  // See repair_topic of once/log.h. Default: an error ("config"), for brokers that repair
  // themselves.
  [[nodiscard]] virtual Result<TopicRepair> repair(std::string_view url, bool apply) const;
};

}  // namespace once
