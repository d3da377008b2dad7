// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <memory>

#include "cli/demo/conductor.h"
#include "cli/demo/database.h"

namespace once::cli {

// Makes topics and databases in the empty directory.
Status prepare_stage(const DemoSettings& settings);

// The shop with Once. `store` is the shop's; the parent only reads positions and the outbox.
Scene once_scene(const DemoSettings& settings, Store& store);

// The same orders through the naive recipe. `total` is how many messages the log holds.
Scene naive_scene(const DemoSettings& settings, Database& database, std::int64_t total);

}  // namespace once::cli
