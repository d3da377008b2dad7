// SPDX-License-Identifier: Apache-2.0
// What several processes forget together, from seeds (see horizon_world.h).
//
//   ONCE_HORIZON_SEEDS=100000 simulation_test --gtest_filter='Horizon*'    how many
//   ONCE_HORIZON_SEED=42 simulation_test --gtest_filter='Horizon*shown'    this one, with its trace
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "simulation/horizon_world.h"

namespace once::simulation {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string text_of(std::uint64_t seed, const HorizonReport& report) {
  std::string text = "ONCE_HORIZON_SEED=" + std::to_string(seed) + " shows it\n";
  for (const std::string& violation : report.violations) text += "  " + violation + "\n";
  return text;
}

TEST(Horizon, no_message_is_forgotten_before_it_is_handled_and_none_counts_twice) {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < number_from("ONCE_HORIZON_SEEDS", 1500) && failures < 5;
       ++seed) {
    const HorizonReport report = run_horizon_world({.seed = seed});
    if (report.violations.empty()) continue;
    ++failures;
    ADD_FAILURE() << text_of(seed, report);
  }
}

TEST(Horizon, the_seed_that_was_asked_for_is_shown) {
  const std::uint64_t seed = number_from("ONCE_HORIZON_SEED", 0);
  const bool asked = std::getenv("ONCE_HORIZON_SEED") != nullptr;
  const HorizonReport report = run_horizon_world({.seed = seed, .verbose = asked});
  EXPECT_TRUE(report.violations.empty()) << text_of(seed, report);
}

TEST(Horizon, the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(run_horizon_world({.seed = seed}).trace_hash,
              run_horizon_world({.seed = seed}).trace_hash);
}

TEST(Horizon, the_rare_states_are_reached) {
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = 1'000'000; seed < 1'000'200; ++seed)
    for (const auto& [state, count] : run_horizon_world({.seed = seed}).reached)
      reached[state] += count;
  for (const char* state :
       {"ids forgotten", "an idle partition follows the others", "copy of a message without effect",
        "message from the future", "resent", "the store's clock jumps", "a member's clock jumps",
        "downtime", "a topic made anew is noticed", "topic created again",
        "a handled message is compacted", "partition added", "the store goes back",
        "one member is ahead of the others", "commit lost after", "commit lost and late"})
    EXPECT_GE(reached[state], 20u) << state;
}

}  // namespace
}  // namespace once::simulation
