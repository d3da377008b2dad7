// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// sqlite:PATH.
[[nodiscard]] const Adapter& sqlite_adapter();

}  // namespace once
