// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

#include "model/store_state.h"

namespace once {

// Makes nothing.
[[nodiscard]] Result<StoreState> mysql_store_state(const std::string& url);

}  // namespace once
