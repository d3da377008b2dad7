// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/adapter.h"

#include <fmt/format.h>

#include <array>

#include "wire/rabbitmq/sink.h"
#include "wire/rabbitmq/source.h"
#include "wire/rabbitmq/topics.h"

namespace once::rabbitmq {
namespace {

constexpr std::array<std::string_view, 2> schemes{"amqp", "amqps"};

Result<std::unique_ptr<Source>> open_for(std::string_view url, QueueSource::Purpose purpose) {
  return ONCE_TRY(QueueSource::open(ONCE_TRY(Address::parse(url, Role::source)), purpose));
}

Result<std::unique_ptr<Source>> open_source(std::string_view url) {
  return open_for(url, QueueSource::Purpose::consume);
}

Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url) {
  return open_for(url, QueueSource::Purpose::look);
}

Result<std::unique_ptr<Sink>> open_sink(std::string_view url) {
  return ONCE_TRY(RabbitSink::open(ONCE_TRY(Address::parse(url, Role::sink))));
}

Result<SinkTraits> traits_of_sink(std::string_view url) {
  return sink_traits(ONCE_TRY(Address::parse(url, Role::sink)));
}

bool always(const Url&) { return true; }

// A queue, or an exchange: which queues that feeds, only the broker knows.
std::optional<TopicAddress> topic_address(const Url& url) {
  TopicAddress address{.brokers =
                           broker_endpoints(url, url.scheme == "amqps" ? tls_port : plain_port)};
  const std::string vhost = url.path.empty() || url.path == "/" ? "" : url.path + "/";
  if (const std::string* queue = url.parameter("queue"))
    address.topics.push_back({vhost + *queue});
  else if (const std::string* exchange = url.parameter("exchange"))
    address.topics.push_back({"the exchange " + vhost + *exchange});
  if (address.topics.empty()) return std::nullopt;
  return address;
}

}  // namespace

const Adapter& adapter() {
  static const Adapter adapter{.schemes = schemes,
                               .source = open_source,
                               .source_to_look = open_source_to_look,
                               .shares_out = always,
                               .is_queue = always,
                               .sink = open_sink,
                               .sink_traits = traits_of_sink,
                               .topics = &topics(),
                               .topic_address = topic_address};
  return adapter;
}

}  // namespace once::rabbitmq
