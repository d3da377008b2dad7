// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <string>

#include "cli/demo/load.h"

namespace once::cli {

// What a child process of the demo does until it has finished, is asked to end (SIGTERM) or is
// killed. `role` is one of gate, orders, relay, points, naive-orders, naive-points.
Status play_role(const std::string& role, const DemoSettings& settings);

// The parts of the naive recipe (naive.cc).
Status play_naive_orders(const DemoSettings& settings);
Status play_naive_points(const DemoSettings& settings);

// True once SIGTERM has come. `await_end` must have been called by the main thread first.
void await_end();
bool end_was_asked();

// A seed of its own for each process, so that a restarted one does not repeat its luck.
std::uint64_t seed_of_process(const DemoSettings& settings);

}  // namespace once::cli
