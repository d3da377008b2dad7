// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"
#include "operate/later.h"
#include "operate/outbox.h"

namespace once::operate {

// A pipeline of a store, at a glance.
struct PipelineStatus {
  std::string scope;
  ScopeRecord record = {};
  std::size_t parked = 0;
  WaitingCount waiting = {};
  std::size_t claims_in_doubt = 0;  // counted up to 1,000
  std::string holder = {};          // the process that runs it; empty: none is known to
  std::int64_t progress_ms = -1;    // when everything was last settled in a partition; -1: unknown
};

struct StoreStatus {
  std::string store;
  std::vector<PipelineStatus> pipelines = {};
  std::vector<DestinationRecord> destinations = {};  // of the outbox
};

[[nodiscard]] Result<StoreStatus> status_of(Books& books);

Json json_of(const StoreStatus& status);

}  // namespace once::operate
