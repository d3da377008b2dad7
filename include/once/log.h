// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/result.h>
#include <once/sink.h>
#include <once/source.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// The embedded log: topics of partitions in a directory, DIR/TOPIC/PARTITION/. One process writes
// a topic at a time (a second one is refused with the tag "busy"); any number may read it.

// What a sink does with a message whose predecessors have not arrived.
enum class GapPolicy : std::uint8_t {
  refuse,  // an error with the remedy `retry` and the tag "gap"
  hold,    // wait for them in a bounded buffer, then append in order
  accept,  // append now; the predecessors are still new when they come
};

// Settings of a topic; kept with it.
struct TopicOptions {
  std::uint32_t partitions = 1;
  std::int64_t segment_bytes_max = 64 << 20;
  std::int64_t retention_ms = -1;     // -1: keep for ever
  std::int64_t retention_bytes = -1;  // per partition
  GapPolicy gaps = GapPolicy::refuse;

  bool operator==(const TopicOptions&) const = default;
};

struct PartitionInfo {
  std::uint32_t partition = 0;
  std::int64_t first_offset = 0;
  std::int64_t end_offset = 0;
  std::int64_t bytes = 0;
  std::uint32_t segments = 0;
  std::uint32_t producers = 0;
  std::string damage = {};  // not empty: what is wrong with it, and the figures are not known
};

struct TopicInfo {
  std::string name;
  // 32 hexadecimal digits, drawn when the topic was made and kept: made anew under the same name,
  // it is another topic. Empty for a topic of an older version until it is written again.
  std::string id;
  TopicOptions options;
  std::vector<PartitionInfo> partitions;
};

// Idempotent: asked twice with the same options, it happens once and answers the same; with other
// options it is an error.
[[nodiscard]] Status create_topic(const std::string& directory, const std::string& topic,
                                  const TopicOptions& options);
// Deletes what the topic made and nothing else: while anything else is in its directory, or a link
// in place of one of its files, it is an error ("foreign") and nothing is touched.
[[nodiscard]] Status delete_topic(const std::string& directory, const std::string& topic);
[[nodiscard]] Result<std::vector<std::string>> list_topics(const std::string& directory);
// "corrupt" when a partition is damaged.
[[nodiscard]] Result<TopicInfo> describe_topic(const std::string& directory,
                                               const std::string& topic);
// The same, but says which partitions are damaged. Looks at which files there are, how segments
// continue each other and at the last segment; only a repair reads everything.
[[nodiscard]] Result<TopicInfo> inspect_topic(const std::string& directory,
                                              const std::string& topic);

// Messages by their numbers: from `first` up to, not including, `end`.
struct OffsetRange {
  std::int64_t first = 0;
  std::int64_t end = 0;

  bool operator==(const OffsetRange&) const = default;
};

// What a repair does to a partition, or would do.
struct PartitionRepair {
  std::uint32_t partition = 0;
  std::int64_t first_offset = 0;  // what can be read afterwards
  std::int64_t end_offset = 0;
  std::int64_t lost_count = 0;              // messages that were acknowledged and are gone
  bool forgets_producers = false;           // nothing is left that says what they sent
  std::int64_t cut_bytes = 0;               // zeros behind segments; no message is lost with them
  std::vector<OffsetRange> lost = {};       // which messages
  std::string damage = {};                  // what was found; empty: files are missing in front
  std::vector<std::string> set_aside = {};  // the names that damaged files were given

  bool operator==(const PartitionRepair&) const = default;
};

struct TopicRepair {
  std::vector<PartitionRepair> partitions = {};  // that need it
  // Numbers of lost messages are given again, or it is not known whether they are: the topic is
  // another one to its readers, whose positions are "gone" until a person sets them.
  bool renews_identity = false;
  bool resets_options = false;  // its file is lost: partitions are counted, all else is the default

  bool is_needed() const { return resets_options || !partitions.empty(); }
};

// Brings a topic back that is damaged: files that are gone, changed or cut. What is sound behind
// the last damage is kept; if that is at the end of a partition, what is sound in front of it.
// Nothing is deleted: damaged files are given other names. All is read, and changed only with
// `apply`.
[[nodiscard]] Result<TopicRepair> repair_topic(const std::string& directory,
                                               const std::string& topic, bool apply,
                                               Clock& clock = system_clock());

struct LogSourceOptions {
  bool stop_at_end = false;  // answer `end` when all partitions were read to their end
};

// What is known of a topic as a destination without opening it.
[[nodiscard]] SinkTraits log_sink_traits(const std::string& directory, const std::string& topic);
[[nodiscard]] Result<std::unique_ptr<Sink>> open_log_sink(const std::string& directory,
                                                          const std::string& topic,
                                                          Clock& clock = system_clock());
[[nodiscard]] Result<std::unique_ptr<Source>> open_log_source(const std::string& directory,
                                                              const std::string& topic,
                                                              const LogSourceOptions& options = {},
                                                              Clock& clock = system_clock());

}  // namespace once
