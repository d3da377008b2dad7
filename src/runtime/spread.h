// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/lane_thread.h"

namespace once {

// How the messages of a source without order are spread over lanes.

// Messages that wait are unacknowledged: of a source that limits these, at most half of them wait.
inline std::size_t waiting_max_per_lane(const SourceTraits& source,
                                        const PipelineOptions& options) {
  if (source.unacknowledged_max == 0) return options.waiting_max;
  return std::clamp<std::size_t>(source.unacknowledged_max / 2 / options.lanes, 1,
                                 options.waiting_max);
}

// Of a source that gives only so many, each lane gets its part.
inline std::size_t poll_count_max(const SourceTraits& source, const PipelineOptions& options) {
  if (source.unacknowledged_max == 0) return options.batch_count_max;
  return std::clamp<std::size_t>(source.unacknowledged_max / options.lanes, 1,
                                 options.batch_count_max);
}

// Which lane has least to do; of several the next one after `turn`.
inline std::size_t least_loaded(const std::vector<std::unique_ptr<LaneThread>>& lanes,
                                std::size_t turn) {
  std::size_t best = turn % lanes.size();
  std::size_t best_queued = lanes[best]->queued();
  for (std::size_t i = 1; i < lanes.size() && best_queued > 0; ++i) {
    const std::size_t candidate = (turn + i) % lanes.size();
    const std::size_t queued = lanes[candidate]->queued();
    if (queued >= best_queued) continue;
    best = candidate;
    best_queued = queued;
  }
  return best;
}

}  // namespace once
