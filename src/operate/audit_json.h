// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "audit/bridge_audit.h"
#include "audit/stream_audit.h"
#include "operate/json.h"

namespace once::operate {

Json json_of(const audit::AuditReport& report);
Json json_of(const audit::BridgeReport& report);

}  // namespace once::operate
