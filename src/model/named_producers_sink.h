// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <once/sink.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace once {

// The writing end of a topic at a broker to which every producer name is a producer of its own:
// appends go to the one whose number is in their stamp. A `Producer` has `enter`, `append`, `sent`
// and `last_digest`, for each partition, and is thread-safe, as this is.
template <class Producer>
class NamedProducersSink final : public Sink, public SinkProducers {
 public:
  using Make = std::function<std::unique_ptr<Producer>(std::string name)>;

  NamedProducersSink(SinkTraits traits, std::uint32_t partition_count, Make make)
      : traits_(std::move(traits)), partition_count_(partition_count), make_(std::move(make)) {}

  SinkTraits traits() const override { return traits_; }
  SinkProducers* producers() override { return this; }
  Result<std::uint32_t> partitions() override { return partition_count_; }

  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    if (name.empty()) return fail(Remedy::stop, "config", "a producer needs a name");
    Producer& entering = producer_named(name);
    const Stamp stamp = ONCE_TRY(entering.enter(partition));
    const std::lock_guard lock(mutex_);
    entered_[stamp.producer] = &entering;
    return stamp;
  }

  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    return producer_named(name).sent(partition);
  }

  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    ONCE_TRY(check(partition));
    return producer_named(name).last_digest(partition);
  }

  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    ONCE_TRY(check(partition));
    if (messages.empty()) return fail(Remedy::stop, "config", "there is nothing to append");
    Producer* const producer = find(stamp.producer);
    if (producer == nullptr)
      return fail(
          Remedy::stop, "unknown",
          fmt::format("{}: no producer {:x} has entered here", traits_.name, stamp.producer));
    return producer->append(partition, stamp, messages);
  }

 private:
  Status check(std::uint32_t partition) const {
    if (partition < partition_count_) return {};
    return fail(Remedy::stop, "partition",
                fmt::format("{} has no partition {}: it has {}", traits_.name, partition,
                            partition_count_));
  }

  Producer& producer_named(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = named_.find(name);
    if (found != named_.end()) return *found->second;
    std::string owned(name);
    auto made = make_(owned);
    return *named_.emplace(std::move(owned), std::move(made)).first->second;
  }

  Producer* find(std::uint64_t producer) {
    const std::lock_guard lock(mutex_);
    const auto found = entered_.find(producer);
    return found == entered_.end() ? nullptr : found->second;
  }

  const SinkTraits traits_;
  const std::uint32_t partition_count_;
  const Make make_;
  std::mutex mutex_;  // taken with no other lock
  std::map<std::string, std::unique_ptr<Producer>, std::less<>> named_;
  std::map<std::uint64_t, Producer*> entered_;  // by the producer in their stamps
};

}  // namespace once
