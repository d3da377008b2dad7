// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once {

// mysql://USER:PASSWORD@HOST:PORT/DATABASE.
[[nodiscard]] const Adapter& mysql_adapter();

}  // namespace once
