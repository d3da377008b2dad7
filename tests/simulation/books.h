// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "simulation/broker.h"
#include "simulation/consumer.h"

namespace once::simulation {

// At the end, id by id: what is in the logs against the effects in the store. What is wrong goes
// into the history. `sent` has the ids that were acknowledged to their senders.
void check_books(Context& context, Broker& broker, const std::vector<Purpose>& purposes,
                 const std::vector<std::string>& sent);

}  // namespace once::simulation
