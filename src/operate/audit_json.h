// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "audit/bridge_audit.h"
#include "audit/stream_audit.h"
#include "operate/json.h"

namespace once::operate {

Json json_of(const audit::AuditReport& report);
// `parked`: messages that wait in the state of the bridge.
Json json_of(const audit::BridgeReport& report, std::size_t parked);

}  // namespace once::operate
