// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <cstddef>

#include "base/assert.h"

namespace once {

// What a pipeline relies on in every batch of its source: deliveries of one partition, no more than
// were asked for, and of an ordered source by growing offset, with the end behind them.
inline void check_batch(const Batch& batch, bool ordered, std::size_t count_max) {
  ONCE_ASSERT(batch.deliveries.size() <= count_max);
  std::int64_t last = -1;
  for (const Delivery& delivery : batch.deliveries) {
    ONCE_ASSERT(delivery.partition == batch.partition);
    ONCE_ASSERT(!ordered || delivery.offset > last);
    last = delivery.offset;
  }
  ONCE_ASSERT(!ordered || batch.deliveries.empty() || batch.end_offset > last);
}

// The capabilities of a source are those that its traits name.
inline void check_traits(Source& source) {
  const SourceTraits traits = source.traits();
  ONCE_ASSERT(traits.replayable == (source.replay() != nullptr));
  ONCE_ASSERT((traits.lease_ms >= 0) == (source.leases() != nullptr));
}

}  // namespace once
