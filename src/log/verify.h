// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>

#include "base/file.h"

namespace once::log {

struct Verified {
  std::uint64_t frames = 0;
  std::uint64_t messages = 0;
  std::uint64_t segments = 0;
  std::int64_t first_offset = 0;
  std::int64_t end_offset = 0;
};

// Reads every byte of a partition that nobody writes and checks all of it: every frame and batch,
// that each continues the one before, and that each segment's producer table is what the frames
// before it make. Changes nothing. A torn tail is no damage: it is where the log ends.
[[nodiscard]] Result<Verified> verify_partition(Files& files, const std::string& directory);

}  // namespace once::log
