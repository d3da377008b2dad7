// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string_view>

#include "model/hint.h"

namespace once {

// Errors of a source that no longer has what was read from it before (tag "gone"). Each names the
// cause. A source does not know whether somebody only looks: only where a pipeline reads, with a
// position in a store, are commands added that move it.

// Messages from `offset` on were deleted, up to the oldest one there is.
[[nodiscard]] Error forgotten_error(std::string_view partition, std::int64_t offset,
                                    std::int64_t oldest);
// The partition ends at `end`, before `offset`.
[[nodiscard]] Error ends_before_error(std::string_view partition, std::int64_t end,
                                      std::int64_t offset);
// The message at `offset` is another than the one that was read there.
[[nodiscard]] Error replaced_error(std::string_view partition, std::int64_t offset);

// What ends a pipeline: one of these errors with the commands by which an operator goes on, and any
// error with its commands completed by what is known there (model/hint.h). Called once for an
// error.
[[nodiscard]] Error with_way_on(Error error, const HintPlace& place = {});

}  // namespace once
