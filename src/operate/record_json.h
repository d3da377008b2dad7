// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/records.h>

#include <cstdint>
#include <string>

#include "operate/json.h"

namespace once::operate {

// What a store keeps, as JSON and as text.

// "2026-11-15T22:40:52.123Z"
std::string time_text(std::int64_t ms);

Json json_of(const std::string& scope, const LedgerRecord& record);
Json json_of(const std::string& scope, const ParkedRecord& record);
Json json_of(const std::string& scope, const DeferredRecord& record);
Json json_of(const std::string& scope, const OperationRecord& record);
Json json_of(const std::string& scope, const ClaimRecord& record);
Json json_of(const PartitionRecord& record);

}  // namespace once::operate
