// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>
#include <vector>

namespace once::audit {

// How a topic is read by somebody who only looks: no group is joined, so that nobody loses
// partitions to it, and all partitions are there.
struct LookingUrl {
  std::string source;               // for `open_source`: without group, member and start
  std::string topic;                // for `describe_topic_at`: without `end`, too
  std::vector<std::string> topics;  // the same for each topic, where the URL names several
  std::string group;                // that the URL names and that is left alone; empty: none
};
[[nodiscard]] Result<LookingUrl> looking_url(const std::string& url);
// Of a URL that names one topic, for commands that tell partitions by their numbers.
[[nodiscard]] Result<LookingUrl> looking_url_of_one(const std::string& url);

}  // namespace once::audit
