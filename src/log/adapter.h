// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// file:DIR/TOPIC, the embedded log.
[[nodiscard]] const Adapter& log_adapter();

}  // namespace once
