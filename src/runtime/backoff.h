// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <algorithm>
#include <cstdint>

namespace once {

// How long to wait before the next attempt: doubled each time, within the policy's limits.
inline std::int64_t backoff_ms(const RetryPolicy& policy, std::uint32_t attempts) {
  const std::uint32_t doublings = std::min(attempts > 0 ? attempts - 1 : 0, 30u);
  const std::int64_t longest = std::max(policy.backoff_ms_min, policy.backoff_ms_max);
  if (policy.backoff_ms_min > (longest >> doublings)) return longest;
  return policy.backoff_ms_min << doublings;
}

}  // namespace once
