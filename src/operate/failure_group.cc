// SPDX-License-Identifier: Apache-2.0
#include "operate/failure_group.h"

#include <map>

#include "model/reason.h"

namespace once::operate {

std::vector<FailureGroup> failure_groups(const std::vector<ParkedSummary>& parked) {
  std::vector<FailureGroup> groups;
  std::map<std::string, std::size_t> by_reason;
  for (std::size_t i = 0; i < parked.size(); ++i) {
    const auto [found, fresh] = by_reason.try_emplace(masked(parked[i].reason), groups.size());
    if (fresh) groups.push_back({parked[i].number, found->first, {}});
    groups[found->second].members.push_back(i);
  }
  return groups;
}

}  // namespace once::operate
