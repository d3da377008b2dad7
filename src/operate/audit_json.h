// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "audit/bridge_audit.h"
#include "audit/stream_audit.h"
#include "operate/json.h"

namespace once::operate {

Json json_of(const audit::AuditReport& report);
// A queue shows only a part of what it had.
Json json_of_queue(const audit::AuditReport& report);
// `parked`: messages that wait in the state of the bridge.
Json json_of(const audit::BridgeReport& report, std::size_t parked);

// Of a bridge from or to a queue: nothing can be compared.
Json json_of_bridge_without_audit(std::size_t parked);

}  // namespace once::operate
