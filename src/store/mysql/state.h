// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <once/store.h>

#include <memory>
#include <string>

#include "model/store_state.h"

namespace once {

// Makes nothing.
[[nodiscard]] Result<StoreState> mysql_store_state(const std::string& url);
// A store that can only be asked what it is and about statements.
[[nodiscard]] Result<std::unique_ptr<Store>> open_mysql_store_to_look(const std::string& url);

}  // namespace once
