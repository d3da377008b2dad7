// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/topics.h"

namespace once::rabbitmq {

// Queues, exchanges and the bindings between them.
[[nodiscard]] const Topics& topics();

}  // namespace once::rabbitmq
