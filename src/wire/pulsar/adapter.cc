// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/adapter.h"

#include <fmt/format.h>
#include <once/open.h>

#include <array>
#include <set>

#include "wire/pulsar/admin.h"
#include "wire/pulsar/client.h"
#include "wire/pulsar/look.h"
#include "wire/pulsar/ordered_source.h"

namespace once::pulsar {
namespace {

constexpr std::array<std::string_view, 2> schemes{"pulsar", "pulsar+ssl"};
constexpr std::array<std::string_view, 3> reader_parameters{"subscription", "type",
                                                            "unacknowledged"};

Status check_request(const TopicRequest& request) {
  if (request.gaps.value_or(GapPolicy::refuse) != GapPolicy::refuse)
    return fail(Remedy::stop, "config",
                "a topic of Pulsar cannot hold or accept gaps: its producers send in order");
  if (request.segment_bytes_max || request.retention_ms || request.retention_bytes)
    return fail(Remedy::stop, "config",
                "Pulsar keeps messages as its namespace says: set it with `pulsar-admin "
                "namespaces set-retention`, and leave it out here");
  return {};
}

Result<TopicReport> report_of(const Address& address) {
  const std::string first = partition_name(address, 0);
  TopicReport report{.name = first.substr(0, first.rfind('/'))};
  const auto source = ONCE_TRY(open_source_to_look_at(address));
  SourceReplay* const replay = source->replay();
  for (const PartitionEnd& end : ONCE_TRY(replay->ends()))
    report.partitions.push_back({.first_offset = 0, .end_offset = end.offset});
  return report;
}

class PulsarTopics final : public Topics {
 public:
  // One partition: a plain topic, which can have no more later.
  Status create(std::string_view url, const TopicRequest& request) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::sink));
    ONCE_TRY(check_request(request));
    if (request.partitions == 0)
      return fail(Remedy::stop, "config", "a topic has at least one partition");
    const std::uint32_t wanted = request.partitions == 1 ? 0 : request.partitions;
    if (ONCE_TRY(create_topic(address, wanted))) return {};
    const std::uint32_t there = ONCE_TRY(Client(address).partition_count());
    if (there == wanted || (wanted == 0 && there == 1)) return {};
    return fail(Remedy::stop, "exists",
                fmt::format("{} exists with {} partitions, not {}; delete it first, or ask for "
                            "what it has",
                            address.where(), there == 0 ? 1 : there, request.partitions));
  }

  Status remove(std::string_view url) const override {
    const Address address = ONCE_TRY(Address::parse(url, Role::sink));
    const auto count = Client(address).partition_count();
    if (!count && count.error().tag == "missing") return {};
    if (!count) return fail(count.error());
    ONCE_TRY(delete_topic(address, *count > 0));
    return {};
  }

  Result<TopicReport> describe(std::string_view url) const override {
    return report_of(ONCE_TRY(Address::parse(url, Role::sink)));
  }

  Result<std::vector<TopicReport>> list(std::string_view broker_url) const override {
    Address address = ONCE_TRY(Address::parse(broker_url, Role::cluster));
    std::set<std::string> names;
    for (const std::string& full : ONCE_TRY(Client(address).topics_of_namespace())) {
      const std::string name = full.substr(full.rfind('/') + 1);
      if (!name.starts_with("__")) names.insert(name.substr(0, name.rfind("-partition-")));
    }
    std::vector<TopicReport> topics;
    for (const std::string& name : names) {
      address.topic = name;
      topics.push_back(ONCE_TRY(report_of(address)));
    }
    return topics;
  }
};

// The broker shares them out, also those of Failover, by partition; one process has all that is
// read without a subscription, or by Exclusive.
bool shares_out(const Url& url) {
  const std::string* type = url.parameter("type");
  return url.parameter("subscription") != nullptr && (type == nullptr || *type != "exclusive");
}

std::optional<TopicAddress> topic_address(const Url& url) {
  if (url.path.empty()) return std::nullopt;
  const bool encrypts = url.scheme == "pulsar+ssl";
  TopicAddress address{.brokers = broker_endpoints(url, encrypts ? tls_port : plain_port)};
  const bool is_short = url.path.find('/') == std::string::npos;
  address.topics.push_back({is_short ? "public/default/" + url.path : url.path});
  return address;
}

}  // namespace

const Adapter& adapter() {
  static const PulsarTopics topics;
  static const Adapter adapter{.schemes = schemes,
                               .source = open_pulsar_source,
                               .source_to_look = open_source_to_look,
                               .shares_out = shares_out,
                               .group_parameter = "subscription",
                               .reader_parameters = reader_parameters,
                               .sink = open_pulsar_sink,
                               .sink_traits = pulsar_sink_traits,
                               .topics = &topics,
                               .topic_address = topic_address};
  return adapter;
}

}  // namespace once::pulsar
