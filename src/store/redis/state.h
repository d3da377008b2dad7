// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>

#include "model/store_state.h"

namespace once {

// Of the keys: what is kept under which, and how.
inline constexpr std::int64_t redis_layout_version = 2;

// Makes nothing.
[[nodiscard]] Result<StoreState> redis_store_state(const std::string& url);

}  // namespace once
