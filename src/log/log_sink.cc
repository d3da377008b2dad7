// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "log/group_commit.h"
#include "log/limits.h"
#include "log/topic.h"

namespace once::log {
namespace {

// The writing end of a topic. Holds the lock of the topic as long as it lives. Thread-safe.
class LogSink final : public Sink, public SinkProducers {
 public:
  LogSink(std::unique_ptr<File> lock, SinkTraits traits, std::string name,
          std::vector<std::unique_ptr<GroupCommit>> partitions)
      : lock_(std::move(lock)),
        traits_(std::move(traits)),
        name_(std::move(name)),
        partitions_(std::move(partitions)) {}

  ~LogSink() override {
    // What cannot be closed is recovered when it is opened again, as after a crash.
    for (const auto& partition : partitions_) (void)partition->close();
  }

  SinkTraits traits() const override { return traits_; }
  SinkProducers* producers() override { return this; }

  Result<std::uint32_t> partitions() override {
    return static_cast<std::uint32_t>(partitions_.size());
  }

  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    return partitions_[partition]->enter(name);
  }

  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    return partitions_[partition]->next_sequence(name);
  }

  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    ONCE_TRY(check(partition));
    const auto last = ONCE_TRY(partitions_[partition]->last_message(name));
    return last ? std::optional(digest_of(*last)) : std::nullopt;
  }

  bool takes_unnamed() const override { return true; }

  Result<std::int64_t> producer_horizon_ms(std::uint32_t partition) override {
    ONCE_TRY(check(partition));
    return partitions_[partition]->producer_horizon_ms();
  }

  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    ONCE_TRY(check(partition));
    return partitions_[partition]->append(stamp, messages);
  }

 private:
  Status check(std::uint32_t partition) const {
    if (partition < partitions_.size()) return {};
    return fail(Remedy::stop, "partition",
                fmt::format("topic {} has no partition {}: it has {}", name_, partition,
                            partitions_.size()));
  }

  std::unique_ptr<File> lock_;
  const SinkTraits traits_;
  const std::string name_;
  std::vector<std::unique_ptr<GroupCommit>> partitions_;
};

}  // namespace

Result<std::unique_ptr<Sink>> open_log_sink(Files& files, const std::string& directory,
                                            const std::string& topic, Clock& clock,
                                            const Random& random) {
  (void)ONCE_TRY(read_topic(files, directory, topic));  // before the lock makes its directory
  auto lock = ONCE_TRY(files.open(lock_path(directory, topic), OpenMode::lock));
  const TopicFile file = ONCE_TRY(read_topic(files, directory, topic));
  const TopicOptions& options = file.options;
  PartitionOptions chosen;
  chosen.must_exist = file.is_written;
  chosen.segment_bytes_max = options.segment_bytes_max;
  chosen.retention_ms = options.retention_ms;
  chosen.retention_bytes = options.retention_bytes;
  chosen.gaps = options.gaps;
  chosen.random = random;
  std::vector<std::unique_ptr<GroupCommit>> partitions;
  for (std::uint32_t i = 0; i < options.partitions; ++i)
    partitions.push_back(std::make_unique<GroupCommit>(
        ONCE_TRY(Partition::open(files, clock, partition_directory(directory, topic, i), chosen))));
  ONCE_TRY(mark_written(files, directory, topic, file, random));
  return std::make_unique<LogSink>(std::move(lock), log_sink_traits(directory, topic), topic,
                                   std::move(partitions));
}

}  // namespace once::log

namespace once {

// Producers are forgotten with the last of what they sent.
SinkTraits log_sink_traits(const std::string& directory, const std::string& topic) {
  return {.name = fmt::format("file:{}/{}", directory, topic),
          .recognises = Recognises::by_stamp,
          .recognises_ms = -1,
          .ordered = true,
          .message_bytes_max = log::message_bytes_max};
}

Result<std::unique_ptr<Sink>> open_log_sink(const std::string& directory, const std::string& topic,
                                            Clock& clock) {
  return log::open_log_sink(system_files(), directory, topic, clock);
}

}  // namespace once
