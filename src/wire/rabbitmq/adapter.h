// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/adapter.h"

namespace once::rabbitmq {

// RabbitMQ (and other brokers that speak AMQP 0-9-1 with its extensions).
[[nodiscard]] const Adapter& adapter();

}  // namespace once::rabbitmq
