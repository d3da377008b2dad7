// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <once/sink.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "model/forwarding_sink.h"
#include "operate/failure.h"

namespace once::operate {

// The producers of one partition of a sink.
class OnePartitionProducers final : public SinkProducers {
 public:
  OnePartitionProducers(SinkProducers& all, std::uint32_t partition)
      : all_(all), partition_(partition) {}

  Result<Stamp> enter(std::uint32_t, std::string_view name) override {
    return all_.enter(partition_, name);
  }
  Result<std::uint64_t> sent_by(std::uint32_t, std::string_view name) override {
    return all_.sent_by(partition_, name);
  }
  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t, std::string_view name) override {
    return all_.last_digest(partition_, name);
  }
  bool takes_unnamed() const override { return all_.takes_unnamed(); }
  Result<std::int64_t> producer_horizon_ms(std::uint32_t) override {
    return all_.producer_horizon_ms(partition_);
  }

 private:
  SinkProducers& all_;  // outlives this
  const std::uint32_t partition_;
};

// A sink of which only one partition is seen: all messages go there, whatever their keys are.
class OnePartitionSink final : public ForwardingSink {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Sink>> make(std::unique_ptr<Sink> sink,
                                                          std::uint32_t partition) {
    const std::uint32_t count = ONCE_TRY(sink->partitions());
    if (partition >= count)
      return fail_usage(
          fmt::format("the topic has no partition {}: it has 0 to {}", partition, count - 1));
    return std::unique_ptr<Sink>(new OnePartitionSink(std::move(sink), partition));
  }

  Result<std::uint32_t> partitions() override { return 1; }
  Result<Receipt> append(std::uint32_t, const Stamp& stamp,
                         std::span<const Message> messages) override {
    return inner().append(partition_, stamp, messages);
  }
  SinkProducers* producers() override { return producers_ ? &*producers_ : nullptr; }

 private:
  OnePartitionSink(std::unique_ptr<Sink> sink, std::uint32_t partition)
      : ForwardingSink(*sink), sink_(std::move(sink)), partition_(partition) {
    if (SinkProducers* const all = sink_->producers()) producers_.emplace(*all, partition);
  }

  const std::unique_ptr<Sink> sink_;
  const std::uint32_t partition_;
  std::optional<OnePartitionProducers> producers_;
};

}  // namespace once::operate
