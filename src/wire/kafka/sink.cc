// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <once/open.h>
#include <once/sink.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "model/named_producers_sink.h"
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
  SinkTraits traits = kafka::traits_of(address);
  return std::make_unique<NamedProducersSink<kafka::Voice>>(
      std::move(traits), count, [address = std::move(address)](std::string name) {
        return std::make_unique<kafka::Voice>(address, std::move(name));
      });
}

}  // namespace once
