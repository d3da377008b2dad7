// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/pipeline.h>
#include <once/source.h>
#include <once/store.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "operate/json.h"

namespace once::operate {

// How the reason of what a person has parked begins.
inline constexpr std::string_view by_hand_prefix = "by hand: ";

// A message that a pipeline has not handled yet, and is not to handle.
struct SetAsideRequest {
  std::string partition;
  std::int64_t offset = 0;
  std::string reason;
};
struct SetAside {
  std::string scope;
  std::string partition;
  std::int64_t offset = 0;
  std::string id;
};
// Parks it, in one transaction, as the pipeline would: its id is recorded as parked, so that it is
// a duplicate when the pipeline comes to it, and the position passes it in its order. No partition
// is taken; a pipeline that handles the message at this moment makes it an error here. `source` is
// only looked at. `options` are those of the pipeline.
[[nodiscard]] Result<SetAside> set_aside(Source& source, Store& store,
                                         const PipelineOptions& options,
                                         const SetAsideRequest& request);

Json json_of(const SetAside& message);

}  // namespace once::operate
