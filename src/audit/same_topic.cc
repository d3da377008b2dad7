// SPDX-License-Identifier: Apache-2.0
#include "audit/same_topic.h"

#include "audit/looking_url.h"
#include "base/url.h"
#include "open/look.h"
#include "open/shared_topic.h"

namespace once::audit {
namespace {

// That of the cluster; empty if it is not known. One that is away is waited for later.
std::string identity_of(const std::string& url) {
  const auto looking = looking_url(url);
  if (!looking) return {};
  const auto source = open_source_to_look(looking->source);
  return source ? (*source)->traits().identity : std::string();
}

}  // namespace

Result<std::string> topic_of_both(const std::string& one, const std::string& other) {
  ONCE_TRY(parse_url(one));
  ONCE_TRY(parse_url(other));
  const auto shared = shared_topic(one, other);
  if (!shared) return std::string();
  if (shared->is_certain) return shared->name;
  const std::string identity = identity_of(one);
  const bool is_one_cluster = !identity.empty() && identity == identity_of(other);
  return is_one_cluster ? shared->name : std::string();
}

}  // namespace once::audit
