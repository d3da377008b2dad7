// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once::pulsar {

// pulsar://HOST:PORT/TOPIC and pulsar+ssl://.
[[nodiscard]] const Adapter& adapter();

}  // namespace once::pulsar
