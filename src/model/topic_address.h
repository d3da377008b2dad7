// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/url.h"

namespace once {

// Where the topics of a URL are, the same for each way to write the URL. Made by its adapter.
struct TopicAddress {
  struct Topic {
    std::string name;
    std::string also = {};  // another name for it, where one topic can have several; empty: none
  };

  std::vector<Endpoint> brokers = {};  // none: the names alone tell topics apart
  std::vector<Topic> topics = {};
};

// A topic to which two URLs lead.
struct SharedTopic {
  std::string name;
  // Otherwise the topics have the same name on brokers that are named differently: whether these
  // are of one cluster only the cluster can tell.
  bool is_certain = true;
};

// The first topic that is in both addresses, which are of one adapter; unset if there is none.
[[nodiscard]] std::optional<SharedTopic> shared_topic(const TopicAddress& one,
                                                      const TopicAddress& other);

// "orders,refunds", one by one.
[[nodiscard]] std::vector<std::string> topic_names(std::string_view list);

// The brokers of a URL, with `port` where it names none. The case of a host means nothing.
[[nodiscard]] std::vector<Endpoint> broker_endpoints(const Url& url, std::uint16_t port);

}  // namespace once
