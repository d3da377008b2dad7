// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "operate/json.h"
#include "runtime/rehearsal.h"

namespace once::operate {

// What a message would do: `partition`, `offset`, `id`, `key`, `verdict` (null: the ledger was not
// asked), `outcome` and its `detail`, `attempts`, `writes` and `emits`.
Json json_of(const Rehearsed& message);

}  // namespace once::operate
