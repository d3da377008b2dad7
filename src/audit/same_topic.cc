// SPDX-License-Identifier: Apache-2.0
#include "audit/same_topic.h"

#include <once/open.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "audit/looking_url.h"
#include "base/url.h"
#include "log/address.h"

namespace once::audit {
namespace {

constexpr std::uint16_t kafka_port = 9092;

std::filesystem::path place_of(const LogAddress& address) {
  std::error_code ignored;
  const auto path = std::filesystem::path(address.directory) / address.topic;
  return std::filesystem::weakly_canonical(path, ignored);
}

bool share_a_broker(const Url& one, const Url& other) {
  const std::vector<Endpoint> known = endpoints_of(one, kafka_port);
  const std::vector<Endpoint> asked = endpoints_of(other, kafka_port);
  return std::any_of(asked.begin(), asked.end(), [&](const Endpoint& endpoint) {
    return std::find(known.begin(), known.end(), endpoint) != known.end();
  });
}

// That of the cluster; empty if it is not known. One that is away is waited for later.
std::string identity_of(const std::string& url) {
  const auto looking = looking_url(url);
  if (!looking) return {};
  const auto source = open_source(looking->source);
  return source ? (*source)->traits().identity : std::string();
}

}  // namespace

Result<bool> is_same_topic(const std::string& one, const std::string& other) {
  const Url first = ONCE_TRY(parse_url(one));
  const Url second = ONCE_TRY(parse_url(other));
  if (first.scheme != second.scheme) return false;
  if (first.scheme == "file")
    return place_of(ONCE_TRY(log_address_of(first))) == place_of(ONCE_TRY(log_address_of(second)));
  if (first.path != second.path) return false;
  if (share_a_broker(first, second)) return true;
  const std::string identity = identity_of(one);
  return !identity.empty() && identity == identity_of(other);
}

}  // namespace once::audit
