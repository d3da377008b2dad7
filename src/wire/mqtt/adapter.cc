// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/adapter.h"

#include <fmt/format.h>

#include <array>

#include "wire/mqtt/link.h"
#include "wire/mqtt/sink.h"
#include "wire/mqtt/source.h"

namespace once::mqtt {
namespace {

constexpr std::array<std::string_view, 2> schemes{"mqtt", "mqtts"};
constexpr std::array<std::string_view, 4> reader_parameters{"client", "share", "expiry",
                                                            "prefetch"};

Result<std::unique_ptr<Source>> open_source(std::string_view url) {
  return MqttSource::open(ONCE_TRY(Address::parse(url, Role::source)));
}

// With a subscription of its own, which ends with the connection: the session of the URL, and its
// share of a group, are left alone. It sees what is retained, and what is sent from now on.
Result<std::unique_ptr<Source>> open_source_to_look(std::string_view url) {
  return MqttSource::open(ONCE_TRY(Address::parse(url, Role::look)));
}

Result<std::unique_ptr<Sink>> open_sink(std::string_view url) {
  return MqttSink::open(ONCE_TRY(Address::parse(url, Role::sink)));
}

// Topics come and go with those who use them: nothing is kept of them, and nobody can list them.
class MqttTopics final : public Topics {
 public:
  Status create(std::string_view, const TopicRequest&) const override {
    return has_none("created: a topic is there as soon as it is used");
  }
  Status remove(std::string_view) const override { return has_none("deleted"); }
  Result<TopicReport> describe(std::string_view url) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::topic));
    ONCE_TRY(Link::open(address, visitor()))->close();
    return TopicReport{.name = address.topic};
  }
  Result<std::vector<TopicReport>> list(std::string_view) const override {
    return has_none("listed");
  }

 private:
  static tl::unexpected<Error> has_none(std::string_view what) {
    return fail(Remedy::stop, "config", fmt::format("topics of MQTT cannot be {}", what));
  }
};

Result<SinkTraits> traits_of(std::string_view url) {
  return sink_traits(ONCE_TRY(Address::parse(url, Role::sink)));
}

// The broker shares messages out among the members of a group, or each process has a session of its
// own; and it keeps a message for its sessions, not for readers.
bool always(const Url&) { return true; }

std::optional<TopicAddress> topic_address(const Url& url) {
  const std::uint16_t usual_port = url.scheme == "mqtts" ? tls_port : plain_port;
  return TopicAddress{.brokers = broker_endpoints(url, usual_port), .topics = {{url.path}}};
}

}  // namespace

const Adapter& adapter() {
  static const MqttTopics topics;
  static const Adapter adapter{.schemes = schemes,
                               .source = open_source,
                               .source_to_look = open_source_to_look,
                               .shares_out = always,
                               .is_queue = always,
                               .reader_parameters = reader_parameters,
                               .sink = open_sink,
                               .sink_traits = traits_of,
                               .topics = &topics,
                               .topic_address = topic_address};
  return adapter;
}

}  // namespace once::mqtt
