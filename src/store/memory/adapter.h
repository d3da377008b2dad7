// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// memory:, for tests.
[[nodiscard]] const Adapter& memory_adapter();

}  // namespace once
