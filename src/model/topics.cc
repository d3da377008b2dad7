// SPDX-License-Identifier: Apache-2.0
#include "model/topics.h"

#include <fmt/format.h>

#include "base/url.h"

namespace once {

Result<TopicReport> Topics::inspect(std::string_view url) const { return describe(url); }

Result<std::vector<std::int64_t>> Topics::offsets_at_time(std::string_view url,
                                                          std::int64_t) const {
  return fail(Remedy::stop, "config", fmt::format("{} cannot be searched by time", shown_url(url)));
}

Result<PartitionOffsets> Topics::first_messages(std::string_view, PartitionOffsets offsets) const {
  return offsets;
}

Result<TopicRepair> Topics::repair(std::string_view, bool) const {
  return fail(Remedy::stop, "config", "only topics of the embedded log are repaired here");
}

}  // namespace once
