// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string_view>

#include "model/store_state.h"

namespace once {

// Whether the store of this URL was made; makes no file, table or key.
[[nodiscard]] Result<StoreState> store_state_at(std::string_view url);

}  // namespace once
