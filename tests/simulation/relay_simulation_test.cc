// SPDX-License-Identifier: Apache-2.0
// Relays of several processes and stores, from seeds: ONCE_SEEDS says how many, ONCE_SEED which.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "simulation/relay_world.h"

namespace once::simulation {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string describe(std::uint64_t seed, const RelayWorldReport& report) {
  std::string text = fmt::format("seed {}:\n", seed);
  for (const std::string& violation : report.violations) text += "  " + violation + "\n";
  for (const std::string& line : report.trace) text += "    " + line + "\n";
  return text;
}

TEST(RelaySimulation, every_message_arrives_as_often_as_it_should_in_order) {
  std::map<std::string, std::uint64_t> reached;
  int failures = 0;
  const std::uint64_t first = number_from("ONCE_SEED", 0);
  const std::uint64_t count = std::getenv("ONCE_SEED") ? 1 : number_from("ONCE_SEEDS", 20000);
  for (std::uint64_t seed = first; seed < first + count && failures < 3; ++seed) {
    const auto report = run_relay_world({.seed = seed});
    for (const auto& [state, times] : report.reached) reached[state] += times;
    if (report.violations.empty()) continue;
    ++failures;
    ADD_FAILURE() << describe(seed, report);
  }
  for (const auto& [state, times] : reached)
    std::printf("%8llu %s\n", static_cast<unsigned long long>(times), state.c_str());
}

// A world in which nothing happens proves nothing.
TEST(RelaySimulation, the_rare_states_are_reached) {
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto report = run_relay_world({.seed = seed});
    for (const auto& [state, times] : report.reached) reached[state] += times;
  }
  for (const char* state :
       {"a call to the store was lost", "a copy at a destination that recognises nothing",
        "a destination that recognises nothing", "the clock jumps back", "the clock jumps ahead",
        "a store was cloned", "a store went back", "an answer of the store was lost",
        "append fails", "awake again", "committed late", "died at a point", "diverged",
        "receipt lost", "stood by", "the topic was made anew"})
    EXPECT_GE(reached[state], 20u) << state;
}

TEST(RelaySimulation, the_same_seed_has_the_same_trace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(run_relay_world({.seed = seed}).trace, run_relay_world({.seed = seed}).trace);
}

}  // namespace
}  // namespace once::simulation
