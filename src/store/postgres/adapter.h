// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// postgresql://..., as libpq takes it.
[[nodiscard]] const Adapter& postgres_adapter();

}  // namespace once
