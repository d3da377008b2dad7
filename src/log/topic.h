// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/log.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace once::log {

// The functions of once/log.h on any file system, for simulators. A topic is the directory
// DIR/TOPIC with the file `topic` (its options), the file `lock`, and a directory per partition.

// Draws ids. Empty: the machine's source of secrets.
using Random = std::function<std::uint64_t()>;

[[nodiscard]] Status create_topic(Files& files, const std::string& directory,
                                  const std::string& topic, const TopicOptions& options,
                                  const Random& random = {});
[[nodiscard]] Status delete_topic(Files& files, const std::string& directory,
                                  const std::string& topic);
[[nodiscard]] Result<std::vector<std::string>> list_topics(Files& files,
                                                           const std::string& directory);
[[nodiscard]] Result<TopicInfo> inspect_topic(Files& files, const std::string& directory,
                                              const std::string& topic);
[[nodiscard]] Result<TopicInfo> describe_topic(Files& files, const std::string& directory,
                                               const std::string& topic);
// What the file `topic` says.
struct TopicFile {
  TopicOptions options;
  std::string id;           // as in TopicInfo
  bool is_written = false;  // a writer has made all partitions: one that is missing is damage

  bool operator==(const TopicFile&) const = default;
};

// "missing" when there is no such topic, "corrupt" when its file is damaged.
[[nodiscard]] Result<TopicFile> read_topic(Files& files, const std::string& directory,
                                           const std::string& topic);
// To be called by a writer that has made all partitions; gives a topic of an older version its id.
[[nodiscard]] Status mark_written(Files& files, const std::string& directory,
                                  const std::string& topic, TopicFile file, const Random& random);
// Whether a process writes the topic at the moment.
[[nodiscard]] Result<bool> is_locked(Files& files, const std::string& directory,
                                     const std::string& topic);

[[nodiscard]] Result<TopicRepair> repair_topic(Files& files, const std::string& directory,
                                               const std::string& topic, bool apply, Clock& clock);

// How many partitions a topic has whose file is lost, from their directories; 0: none are there.
[[nodiscard]] Result<std::uint32_t> count_partitions(Files& files, const std::string& directory,
                                                     const std::string& topic);

// Writes the topic's file with another id.
[[nodiscard]] Status renew_identity(Files& files, const std::string& directory,
                                    const std::string& topic, TopicFile& file);

[[nodiscard]] Result<std::unique_ptr<Sink>> open_log_sink(Files& files,
                                                          const std::string& directory,
                                                          const std::string& topic, Clock& clock,
                                                          const Random& random = {});
[[nodiscard]] Result<std::unique_ptr<Source>> open_log_source(Files& files,
                                                              const std::string& directory,
                                                              const std::string& topic,
                                                              const LogSourceOptions& options,
                                                              Clock& clock);

std::string lock_path(const std::string& directory, const std::string& topic);
std::string topic_directory(const std::string& directory, const std::string& topic);
std::string partition_directory(const std::string& directory, const std::string& topic,
                                std::uint32_t partition);

}  // namespace once::log
