// SPDX-License-Identifier: Apache-2.0
#include "model/topic_address.h"

#include <algorithm>

namespace once {
namespace {

bool share_a_broker(const TopicAddress& one, const TopicAddress& other) {
  return std::find_first_of(one.brokers.begin(), one.brokers.end(), other.brokers.begin(),
                            other.brokers.end()) != one.brokers.end();
}

bool is_same(const TopicAddress::Topic& one, const TopicAddress::Topic& other) {
  return one.name == other.name || (!one.also.empty() && one.also == other.also);
}

}  // namespace

std::optional<SharedTopic> shared_topic(const TopicAddress& one, const TopicAddress& other) {
  const auto shared = std::find_first_of(one.topics.begin(), one.topics.end(), other.topics.begin(),
                                         other.topics.end(), is_same);
  if (shared == one.topics.end()) return std::nullopt;
  return SharedTopic{shared->name, one.brokers.empty() || share_a_broker(one, other)};
}

std::vector<std::string> topic_names(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    names.emplace_back(list.substr(0, list.find(',')));
    if (names.back().size() == list.size()) return names;
    list.remove_prefix(names.back().size() + 1);
  }
}

std::vector<Endpoint> broker_endpoints(const Url& url, std::uint16_t port) {
  std::vector<Endpoint> brokers = endpoints_of(url, port);
  for (Endpoint& broker : brokers)
    std::transform(broker.host.begin(), broker.host.end(), broker.host.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  return brokers;
}

}  // namespace once
