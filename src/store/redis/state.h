// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <once/store.h>

#include <cstdint>
#include <memory>
#include <string>

#include "model/store_state.h"

namespace once {

// Of the keys: what is kept under which, and how.
inline constexpr std::int64_t redis_layout_version = 3;

// Makes nothing.
[[nodiscard]] Result<StoreState> redis_store_state(const std::string& url);
// A store that can only be asked what it is and about commands.
[[nodiscard]] Result<std::unique_ptr<Store>> open_redis_store_to_look(const std::string& url);

}  // namespace once
