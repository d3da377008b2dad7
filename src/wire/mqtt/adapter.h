// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once::mqtt {

// mqtt://HOST:PORT/TOPIC, mqtts://HOST:PORT/TOPIC.
[[nodiscard]] const Adapter& adapter();

}  // namespace once::mqtt
