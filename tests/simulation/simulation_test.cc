// SPDX-License-Identifier: Apache-2.0
// Thousands of worlds, each from a seed. A failing seed is printed with the command to see it.
//
//   ONCE_SEEDS=100000 build/tests/simulation/simulation_test      how many
//   ONCE_SEED=42 build/tests/simulation/simulation_test           this one, with its trace
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "simulation/world.h"

namespace once::simulation {
namespace {

constexpr std::uint64_t shards = 4;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t seed_count() { return number_from("ONCE_SEEDS", 20000); }

std::string describe(const WorldOptions& options, const WorldReport& report) {
  std::string text = fmt::format("seed {} fails; to see it: ONCE_SEED={} simulation_test\n",
                                 options.seed, options.seed);
  for (const std::string& violation : report.violations) text += "  " + violation + "\n";
  return text;
}

class Shard : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Shard, every_promise_is_kept_whatever_happens) {
  std::map<std::string, std::uint64_t> reached;
  std::uint64_t failures = 0, events = 0;
  for (std::uint64_t seed = GetParam(); seed < seed_count() && failures < 5; seed += shards) {
    const WorldOptions options{.seed = seed};
    const WorldReport report = run_world(options);
    events += report.events;
    for (const auto& [state, count] : report.reached) reached[state] += count;
    if (report.violations.empty()) continue;
    ++failures;
    ADD_FAILURE() << describe(options, report);
  }
  for (const auto& [state, count] : reached)
    RecordProperty("reached " + state, std::to_string(count));
  std::printf("%llu events\n", static_cast<unsigned long long>(events));
}

INSTANTIATE_TEST_SUITE_P(Simulation, Shard, ::testing::Range<std::uint64_t>(0, shards));

TEST(Simulation, the_seed_that_was_asked_for_is_shown) {
  const char* asked = std::getenv("ONCE_SEED");
  // Without a request the first seed is run quietly: the way to see a failure must work.
  const WorldOptions options{.seed = number_from("ONCE_SEED", 0), .verbose = asked != nullptr};
  const WorldReport report = run_world(options);
  EXPECT_TRUE(report.violations.empty()) << describe(options, report);
  EXPECT_GT(report.events, 100u);
}

TEST(Simulation, the_same_seed_gives_the_same_trace) {
  std::map<std::uint64_t, int> different;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const WorldReport first = run_world({.seed = seed}), second = run_world({.seed = seed});
    ASSERT_EQ(first.trace_hash, second.trace_hash) << "seed " << seed;
    ASSERT_EQ(first.events, second.events) << "seed " << seed;
    ++different[first.trace_hash];
  }
  EXPECT_EQ(different.size(), 100u);
}

// If the checkers were blind, nothing above would mean anything.
TEST(Simulation, a_made_up_acknowledgement_is_found) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    found += run_world({.seed = seed, .canary = Canary::lost_acknowledgement}).violations.empty()
                 ? 0
                 : 1;
  EXPECT_GE(found, 15);  // in some worlds it is made good by a resend, or never happens
}

TEST(Simulation, a_double_effect_is_found) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    found += run_world({.seed = seed, .canary = Canary::double_effect}).violations.empty() ? 0 : 1;
  EXPECT_GE(found, 15);  // in some worlds it is made good by a resend, or never happens
}

// A simulator that never gets into trouble proves nothing.
TEST(Simulation, the_rare_states_are_reached) {
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = 1'000'000; seed < 1'000'400; ++seed)
    for (const auto& [state, count] : run_world({.seed = seed}).reached) reached[state] += count;
  for (const char* state : {
           "broker dies in an append",
           "broker dies in its recovery",
           "clock jumps ahead",
           "clock jumps back",
           "commit lost after",
           "commit lost before",
           "commit lost and late",
           "commit refused",
           "consumer dies inside a step",
           "duplicate answered",
           "ids forgotten",
           "late request arrives",
           "late request fenced",
           "power cut",
           "recheck found it committed",
           "recheck found nothing",
           "refused: the disk is full",
           "relay dies between two steps",
           "relay stands by",
           "rival in the middle of a handler",
           "sync failed",
           "zombie fenced",
       })
    EXPECT_GE(reached[state], 20u) << state;
  for (const auto& [state, count] : reached)
    std::printf("%8llu %s\n", static_cast<unsigned long long>(count), state.c_str());
}

}  // namespace
}  // namespace once::simulation
