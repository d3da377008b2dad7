// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace once::bench {

// What a run of our binary took.
struct Usage {
  double seconds = 0;  // from its start to its end
  double peak_megabytes = 0;
};

// Runs `once` with the arguments to its end; with `stop_after_s`, until then, and asks it to stop.
// Any end but a good one ends the benchmark.
Usage run_program(const std::vector<std::string>& arguments,
                  std::optional<double> stop_after_s = std::nullopt);

}  // namespace once::bench
