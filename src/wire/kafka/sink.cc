// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/open.h>
#include <once/sink.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "wire/kafka/look.h"
#include "wire/kafka/topic_settings.h"
#include "wire/kafka/voice.h"

namespace once::kafka {
namespace {

// A broker forgets the offsets of a group, where a producer's state is kept, when the group was
// idle for `offsets.retention.minutes`: a week by default.
constexpr std::int64_t offsets_retention_ms = 7 * 86'400'000;
constexpr std::size_t message_bytes_max = 1'000'000;  // librdkafka's and the broker's default

SinkTraits traits_of(const Address& address) {
  SinkTraits traits{.name = address.where(),
                    .recognises = Recognises::by_stamp,
                    .recognises_ms = offsets_retention_ms,
                    .ordered = true,
                    .message_bytes_max = message_bytes_max};
  for (const auto& [name, value] : address.properties)
    if (name == "message.max.bytes")
      traits.message_bytes_max = std::strtoull(value.c_str(), nullptr, 10);
  return traits;
}

// The writing end of a topic: one transactional producer per producer name. Thread-safe.
class KafkaSink final : public Sink, public SinkProducers {
 public:
  KafkaSink(Address address, std::uint32_t partition_count)
      : address_(std::move(address)), partition_count_(partition_count) {}

  SinkTraits traits() const override { return traits_of(address_); }
  SinkProducers* producers() override { return this; }

  Result<std::uint32_t> partitions() override { return partition_count_; }

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
    if (partition < partition_count_) return {};
    return fail(Remedy::stop, "partition",
                fmt::format("{} has no partition {}: it has {}", address_.where(), partition,
                            partition_count_));
  }

  Voice& voice(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = voices_.find(name);
    if (found != voices_.end()) return *found->second;
    std::string owned(name);
    auto made = std::make_unique<Voice>(address_, owned);
    return *voices_.emplace(std::move(owned), std::move(made)).first->second;
  }

  Voice* find(std::uint64_t producer) {
    const std::lock_guard lock(mutex_);
    const auto found = speakers_.find(producer);
    return found == speakers_.end() ? nullptr : found->second;
  }

  const Address address_;
  const std::uint32_t partition_count_;
  std::mutex mutex_;  // taken with no other lock
  std::map<std::string, std::unique_ptr<Voice>, std::less<>> voices_;
  std::map<std::uint64_t, Voice*> speakers_;  // by the producer in their stamps
};

// Defaults that the address may override.
Result<Address> producing_address(std::string_view url) {
  Address address = ONCE_TRY(Address::parse(url, Role::sink));
  const Settings defaults{{"linger.ms", "0"}, {"transaction.timeout.ms", "60000"}};
  address.properties.insert(address.properties.begin(), defaults.begin(), defaults.end());
  return address;
}

std::int64_t number_of(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

// The broker refuses a producer whose transactions may take longer than it allows.
Status check_timeout(const Address& address, const TopicSettings& broker) {
  constexpr const char* name = "transaction.timeout.ms";
  const auto allowed = broker.find("transaction.max.timeout.ms");
  if (allowed == broker.end()) return {};
  std::int64_t asked_ms = 0;
  for (const auto& [property, value] : address.properties)
    if (property == name) asked_ms = number_of(value);
  if (asked_ms <= number_of(allowed->second)) return {};
  return fail(Remedy::stop, "config",
              fmt::format("{}: {} is {}, but the broker allows at most {} "
                          "(transaction.max.timeout.ms); make it smaller",
                          address.where(), name, asked_ms, allowed->second));
}

}  // namespace

Status check_sink(std::string_view url) {
  const Address address = ONCE_TRY(producing_address(url));
  // A producer that never enters leaves nothing at the broker; librdkafka compares its settings.
  auto client = ONCE_TRY(Client::make(RD_KAFKA_PRODUCER, address,
                                      Voice::settings(fmt::format("{}/check", address.topic))));
  return check_timeout(address, ONCE_TRY(broker_settings(*client)));
}

}  // namespace once::kafka

namespace once {

Result<SinkTraits> kafka_sink_traits(std::string_view url) {
  return kafka::traits_of(ONCE_TRY(kafka::Address::parse(url, kafka::Role::sink)));
}

Result<std::unique_ptr<Sink>> open_kafka_sink(std::string_view url) {
  kafka::Address address = ONCE_TRY(kafka::producing_address(url));
  auto client = ONCE_TRY(kafka::Client::make(RD_KAFKA_PRODUCER, address, {}));
  const std::uint32_t count = ONCE_TRY(client->partition_count(address.topic));
  return std::make_unique<kafka::KafkaSink>(std::move(address), count);
}

}  // namespace once
