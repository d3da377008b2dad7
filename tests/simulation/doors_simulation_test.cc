// SPDX-License-Identifier: Apache-2.0
// A partition as a server uses it: ONCE_SEED=42 shows one seed with its trace.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/doors_world.h"
#include "simulation/topic_world.h"

namespace once::simulation {
namespace {

TEST(Doors, what_goes_in_as_it_came_comes_out_once_in_order_at_the_offset_that_was_told) {
  const char* asked = std::getenv("ONCE_SEED");
  const std::uint64_t first = asked == nullptr ? 0 : std::strtoull(asked, nullptr, 10);
  const std::uint64_t count = asked == nullptr ? 2000 : 1;
  std::map<std::string, std::uint64_t> reached;
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + count && failures < 5; ++seed) {
    const auto report = run_doors_world({.seed = seed, .verbose = asked != nullptr});
    for (const auto& [state, times] : report.reached) reached[state] += times;
    if (report.violations.empty()) continue;
    ++failures;
    ADD_FAILURE() << fmt::format("seed {}: {}", seed, report.violations.front());
  }
  if (asked != nullptr) return;
  for (const char* state :
       {"a client comes back", "damaged on its way", "dies in an append", "dies in an entry",
        "dies in recovery", "duplicate answered", "late request", "power cut", "refused: checksum",
        "refused: fenced", "refused: full", "refused: gap", "refused: poisoned", "woken"})
    EXPECT_GE(reached[state], 20u) << state;
}

TEST(TopicOfDoors, a_name_has_one_id_and_every_epoch_once_whatever_happens) {
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    ASSERT_EQ(run_topic_world(seed), std::vector<std::string>{}) << "seed " << seed;
}

}  // namespace
}  // namespace once::simulation
