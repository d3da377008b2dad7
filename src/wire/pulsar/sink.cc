// SPDX-License-Identifier: Apache-2.0
#include <once/open.h>
#include <once/sink.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/named_producers_sink.h"
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
  const auto count = static_cast<std::uint32_t>(topics.size());
  SinkTraits traits = pulsar::traits_of(address);
  return std::make_unique<NamedProducersSink<pulsar::Voice>>(
      std::move(traits), count,
      [address = std::move(address), topics = std::move(topics)](std::string name) {
        return std::make_unique<pulsar::Voice>(address, topics, std::move(name));
      });
}

}  // namespace once
