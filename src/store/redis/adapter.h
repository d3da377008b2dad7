// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// redis://HOST:PORT, a server or a cluster.
[[nodiscard]] const Adapter& redis_adapter();

}  // namespace once
