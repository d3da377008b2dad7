// SPDX-License-Identifier: Apache-2.0
// Consumers of a queue, from seeds (see queue_world.h).
//
//   ONCE_QUEUE_SEEDS=100000 simulation_test --gtest_filter='QueueWorld*'    how many
//   ONCE_QUEUE_SEED=42 simulation_test --gtest_filter='QueueWorld*shown'    this one, with its
//   trace
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "simulation/queue_world.h"

namespace once::simulation {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string text_of(std::uint64_t seed, const QueueWorldReport& report) {
  std::string text = "ONCE_QUEUE_SEED=" + std::to_string(seed) + " shows it\n";
  for (const std::string& violation : report.violations) text += "  " + violation + "\n";
  return text;
}

TEST(QueueWorld, each_id_has_its_effect_once_and_nothing_is_lost_or_held_back) {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < number_from("ONCE_QUEUE_SEEDS", 1000) && failures < 5;
       ++seed) {
    const QueueWorldReport report = run_queue_world({.seed = seed});
    if (report.violations.empty()) continue;
    ++failures;
    ADD_FAILURE() << text_of(seed, report);
  }
}

TEST(QueueWorld, the_seed_that_was_asked_for_is_shown) {
  const std::uint64_t seed = number_from("ONCE_QUEUE_SEED", 0);
  const bool asked = std::getenv("ONCE_QUEUE_SEED") != nullptr;
  const QueueWorldReport report = run_queue_world({.seed = seed, .verbose = asked});
  EXPECT_TRUE(report.violations.empty()) << text_of(seed, report);
}

TEST(QueueWorld, the_same_seed_gives_the_same_trace) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(run_queue_world({.seed = seed}).trace_hash,
              run_queue_world({.seed = seed}).trace_hash);
}

TEST(QueueWorld, the_rare_states_are_reached) {
  std::map<std::string, std::uint64_t> reached;
  for (std::uint64_t seed = 1'000'000; seed < 1'000'100; ++seed)
    for (const auto& [state, count] : run_queue_world({.seed = seed}).reached)
      reached[state] += count;
  for (const char* state :
       {"sent twice", "delivered again", "waits apart", "given back", "ack lost", "connection lost",
        "goes on after it stood still", "rival in the middle of a handler", "dies inside a step",
        "all have asked for patience", "commit lost before", "commit lost after",
        "commit lost and late"})
    EXPECT_GE(reached[state], 20u) << state;
}

}  // namespace
}  // namespace once::simulation
