// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/testing.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "testing/fate.h"

namespace once::testing {

// What else is delivered with each batch.
enum class Redelivery : std::uint8_t {
  none,
  twice,       // the batch once more
  from_start,  // everything up to its end once more
};

// A schedule: what the source holds, how it is delivered, and what goes wrong.
struct Script {
  std::string name;
  std::uint64_t seed = 0;
  std::vector<std::size_t> log;  // the index of the message at each offset
  std::size_t batch_count = 1;
  Redelivery redelivery = Redelivery::none;
  Misfortune misfortune = {};
};

// What came of it.
struct Run {
  std::vector<Effect> effects;
  std::map<std::string, Outcome::Kind> outcomes;  // what the handler said last, by id
  std::optional<std::string> stopped;             // why it did not come to its end
  std::size_t calls = 0;
  std::size_t deaths = 0;
  std::size_t faults = 0;
  std::vector<std::string> steps;
};

// The ids of the plan's messages, as its id rule says; without one, those they carry.
Result<std::vector<std::string>> ids_of(const Plan& plan);

// Plays the script on a fresh store, through as many lives of the process as it takes. An error:
// there was no store, or its effects could not be read.
Result<Run> play(const Plan& plan, const std::vector<std::string>& ids, const Script& script);

}  // namespace once::testing
