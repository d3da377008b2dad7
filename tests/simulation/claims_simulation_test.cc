// SPDX-License-Identifier: Apache-2.0
// Claims under pauses, deaths and lost answers, from seeds: ONCE_SEEDS says how many.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/claims_world.h"

namespace once::simulation {
namespace {

std::uint64_t seed_count() {
  const char* text = std::getenv("ONCE_SEEDS");
  return text == nullptr ? 20000 : std::strtoull(text, nullptr, 10);
}

class ClaimsSimulation : public ::testing::TestWithParam<Side> {};

TEST_P(ClaimsSimulation, every_effect_happens_as_often_as_promised) {
  std::map<std::string, std::uint64_t> reached;
  int failures = 0;
  for (std::uint64_t seed = 0; seed < seed_count() && failures < 3; ++seed) {
    const auto report = run_claims_world({.seed = seed, .side = GetParam()});
    for (const auto& [state, count] : report.reached) reached[state] += count;
    if (report.violations.empty()) continue;
    ++failures;
    std::string text = fmt::format("seed {}:\n", seed);
    for (const std::string& violation : report.violations) text += "  " + violation + "\n";
    for (const std::string& line : report.trace) text += "    " + line + "\n";
    ADD_FAILURE() << text;
  }
  // A world in which nothing happens proves nothing.
  for (const char* state : {"died after the effect", "died before the effect", "answer lost",
                            "superseded", "write refused", "write lost before", "write lost after"})
    EXPECT_GT(reached[state], 0u) << state;
  const bool survives = GetParam() == Side::tells_duplicates || GetParam() == Side::at_least_once;
  EXPECT_EQ(reached["the store goes back"] > 0, survives);
}

INSTANTIATE_TEST_SUITE_P(Kept, ClaimsSimulation,
                         ::testing::Values(Side::tells_duplicates, Side::can_be_asked,
                                           Side::at_least_once, Side::at_most_once));

TEST(ClaimsSimulation, H16_without_a_fence_at_the_other_side_a_paused_owner_is_seen_to_pay_twice) {
  std::size_t broken = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    broken +=
        run_claims_world({.seed = seed, .side = Side::asked_unfenced}).violations.empty() ? 0 : 1;
  EXPECT_GT(broken, 0u) << "the simulator is blind";
}

TEST(ClaimsSimulation, the_same_seed_has_the_same_trace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(run_claims_world({.seed = seed, .side = Side::can_be_asked}).trace,
              run_claims_world({.seed = seed, .side = Side::can_be_asked}).trace);
}

}  // namespace
}  // namespace once::simulation
