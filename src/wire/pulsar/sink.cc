// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/clock.h>
#include <once/open.h>
#include <once/sink.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "wire/pulsar/voice.h"

namespace once::pulsar {
namespace {

// A broker forgets a producer that was inactive for this long, unless it is told otherwise
// (brokerDeduplicationProducerInactivityTimeoutMinutes).
constexpr std::int64_t inactivity_ms = 6 * 3'600'000;
constexpr std::size_t message_bytes_max = 5u << 20;  // the broker's default (maxMessageSize)

SinkTraits traits_of(const Address& address) {
  return {.name = address.where(),
          .recognises = Recognises::by_stamp,
          .recognises_ms = inactivity_ms,
          .ordered = true,
          .message_bytes_max = message_bytes_max,
          .warnings = {"resends are only recognised where deduplication is on: the first message "
                       "of a new producer finds out"}};
}

// The writing end of a topic: one producer of Pulsar per producer name and partition. Thread-safe.
class PulsarSink final : public Sink, public SinkProducers {
 public:
  PulsarSink(Address address, std::vector<std::string> topics)
      : address_(std::move(address)), topics_(std::move(topics)) {}

  SinkTraits traits() const override { return traits_of(address_); }
  SinkProducers* producers() override { return this; }
  Result<std::uint32_t> partitions() override { return static_cast<std::uint32_t>(topics_.size()); }

  Result<Stamp> enter(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    if (name.empty()) return fail(Remedy::stop, "config", "a producer needs a name");
    Voice& speaker = voice(name);
    const Stamp stamp = ONCE_TRY(speaker.enter(partition));
    const std::lock_guard lock(mutex_);
    speakers_[stamp.producer] = &speaker;
    return stamp;
  }

  Result<std::uint64_t> sent_by(std::uint32_t partition, std::string_view name) override {
    ONCE_TRY(check(partition));
    return voice(name).sent(partition);
  }

  Result<std::optional<std::uint64_t>> last_digest(std::uint32_t partition,
                                                   std::string_view name) override {
    ONCE_TRY(check(partition));
    return voice(name).last_digest(partition);
  }

  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         std::span<const Message> messages) override {
    ONCE_TRY(check(partition));
    if (messages.empty()) return fail(Remedy::stop, "config", "there is nothing to append");
    Voice* speaker = find(stamp.producer);
    if (speaker == nullptr)
      return fail(
          Remedy::stop, "unknown",
          fmt::format("{}: no producer {:x} has entered here", address_.where(), stamp.producer));
    return speaker->append(partition, stamp, messages);
  }

 private:
  Status check(std::uint32_t partition) const {
    if (partition < topics_.size()) return {};
    return fail(Remedy::stop, "partition",
                fmt::format("{} has no partition {}: it has {}", address_.where(), partition,
                            topics_.size()));
  }

  Voice& voice(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = voices_.find(name);
    if (found != voices_.end()) return *found->second;
    std::string owned(name);
    auto made = std::make_unique<Voice>(address_, topics_, owned);
    return *voices_.emplace(std::move(owned), std::move(made)).first->second;
  }

  Voice* find(std::uint64_t producer) {
    const std::lock_guard lock(mutex_);
    const auto found = speakers_.find(producer);
    return found == speakers_.end() ? nullptr : found->second;
  }

  const Address address_;
  const std::vector<std::string> topics_;
  std::mutex mutex_;  // taken with no other lock
  std::map<std::string, std::unique_ptr<Voice>, std::less<>> voices_;
  std::map<std::uint64_t, Voice*> speakers_;  // by the producer in their stamps
};

}  // namespace
}  // namespace once::pulsar

namespace once {

Result<SinkTraits> pulsar_sink_traits(std::string_view url) {
  return pulsar::traits_of(ONCE_TRY(pulsar::Address::parse(url, pulsar::Role::sink)));
}

Result<std::unique_ptr<Sink>> open_pulsar_sink(std::string_view url) {
  pulsar::Address address = ONCE_TRY(pulsar::Address::parse(url, pulsar::Role::sink));
  pulsar::Client client(address);
  std::vector<std::string> topics = ONCE_TRY(client.topics());
  return std::make_unique<pulsar::PulsarSink>(std::move(address), std::move(topics));
}

}  // namespace once
