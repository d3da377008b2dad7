// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once::kafka {

// kafka://HOST:PORT/TOPIC.
[[nodiscard]] const Adapter& adapter();

}  // namespace once::kafka
