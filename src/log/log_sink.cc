// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "log/limits.h"
#include "log/topic.h"
#include "log/topic_log.h"

namespace once::log {
namespace {

// The contract's view of a topic that is written here. Thread-safe.
class LogSink final : public Sink, public SinkProducers {
 public:
  LogSink(std::unique_ptr<TopicLog> topic, SinkTraits traits)
      : topic_(std::move(topic)), traits_(std::move(traits)) {}

  SinkTraits traits() const override { return traits_; }
  SinkProducers* producers() override { return this; }

  Result<std::uint32_t> partitions() override { return topic_->partition_count(); }

  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    return topic_->enter(partition, name);
  }

  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    return ONCE_TRY(topic_->partition(partition))->next_sequence(name);
  }

  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    const auto last = ONCE_TRY(ONCE_TRY(topic_->partition(partition))->last_message(name));
    return last ? std::optional(digest_of(*last)) : std::nullopt;
  }

  bool takes_unnamed() const override { return true; }

  Result<std::int64_t> producer_horizon_ms(std::uint32_t partition) override {
    return ONCE_TRY(topic_->partition(partition))->producer_horizon_ms();
  }

  // The stamp is one that `enter` gave, so it has the id that the partition knows.
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return ONCE_TRY(topic_->partition(partition))->append(stamp, messages);
  }

 private:
  std::unique_ptr<TopicLog> topic_;
  const SinkTraits traits_;
};

}  // namespace

Result<std::unique_ptr<Sink>> open_log_sink(Files& files, const std::string& directory,
                                            const std::string& topic, Clock& clock,
                                            const Random& random) {
  return std::make_unique<LogSink>(ONCE_TRY(TopicLog::open(files, directory, topic, clock, random)),
                                   log_sink_traits(directory, topic));
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
