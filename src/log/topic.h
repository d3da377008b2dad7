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

[[nodiscard]] Status create_topic(Files& files, const std::string& directory,
                                  const std::string& topic, const TopicOptions& options);
[[nodiscard]] Status delete_topic(Files& files, const std::string& directory,
                                  const std::string& topic);
[[nodiscard]] Result<std::vector<std::string>> list_topics(Files& files,
                                                           const std::string& directory);
[[nodiscard]] Result<TopicInfo> describe_topic(Files& files, const std::string& directory,
                                               const std::string& topic);
// "missing" when there is no such topic, "corrupt" when its file is damaged.
[[nodiscard]] Result<TopicOptions> read_topic(Files& files, const std::string& directory,
                                              const std::string& topic);

[[nodiscard]] Result<std::unique_ptr<Sink>> open_log_sink(
    Files& files, const std::string& directory, const std::string& topic, Clock& clock,
    std::function<std::uint64_t()> random = {});
[[nodiscard]] Result<std::unique_ptr<Source>> open_log_source(Files& files,
                                                              const std::string& directory,
                                                              const std::string& topic,
                                                              const LogSourceOptions& options,
                                                              Clock& clock);

std::string topic_directory(const std::string& directory, const std::string& topic);
std::string partition_directory(const std::string& directory, const std::string& topic,
                                std::uint32_t partition);

}  // namespace once::log
