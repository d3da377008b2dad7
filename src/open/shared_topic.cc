// SPDX-License-Identifier: Apache-2.0
#include "open/shared_topic.h"

#include "base/url.h"
#include "open/adapters.h"

namespace once {

std::optional<TopicAddress> topic_address_of(std::string_view text) {
  const auto url = parse_url(text);
  const Adapter* adapter = url ? adapter_of_scheme(url->scheme) : nullptr;
  if (adapter == nullptr || adapter->topic_address == nullptr) return std::nullopt;
  return adapter->topic_address(*url);
}

std::optional<SharedTopic> shared_topic(std::string_view one, std::string_view other) {
  const auto first = parse_url(one);
  const auto second = parse_url(other);
  if (!first || !second || adapter_of_scheme(first->scheme) != adapter_of_scheme(second->scheme))
    return std::nullopt;
  const auto address = topic_address_of(one);
  const auto other_address = topic_address_of(other);
  if (!address || !other_address) return std::nullopt;
  return shared_topic(*address, *other_address);
}

}  // namespace once
