// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/source.h>

#include <cstdint>
#include <string_view>

namespace once {

// Reading of a partition that was announced begins at `offset`, -1 being the oldest message there
// is; of a source that is not replayable, with whatever it delivers.
[[nodiscard]] inline Status start_at(Source& source, std::string_view partition,
                                     std::int64_t offset) {
  SourceReplay* const replay = source.replay();
  return replay == nullptr ? Status{} : replay->seek(partition, offset);
}

}  // namespace once
