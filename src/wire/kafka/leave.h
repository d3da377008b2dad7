// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "wire/kafka/client.h"

namespace once::kafka {

// Closes a consumer: its last offsets are committed, its partitions given back, and a dynamic
// member leaves its group, so that the others need not wait for the session time-out. librdkafka
// would wait for brokers that are away; this does so for `wait_ms` at most. Any thread may call it;
// the consumer must not be polled any more. Answers whether it is closed.
bool close_consumer(const Client& client, int wait_ms);

// A client that cannot be destroyed without waiting for a broker stays until the process ends.
void keep_until_exit(std::shared_ptr<Client> client);

}  // namespace once::kafka
