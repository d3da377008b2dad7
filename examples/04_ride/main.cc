// SPDX-License-Identifier: Apache-2.0
// Rides whose news arrive out of order. See README.md.
//
//   example_04_ride DIRECTORY [--rounds N]
#include <once/once.h>

#include <algorithm>
#include <random>

#include "stage.h"

using namespace once;

namespace {

constexpr int ride_count = 12;
const std::vector<std::string> states = {"created", "driver_assigned", "departed",
                                         "arrived", "picked_up",       "done"};

std::string ride_id(int n) { return "ride " + std::to_string(n); }

// The news of all rides, mixed: each comes twice, and anywhere. In another round another gateway
// sends them, with ids of its own, in another order.
std::vector<Message> news(int round) {
  std::vector<Message> list;
  for (int n = 0; n < ride_count; ++n)
    for (const std::string& state : states) {
      const std::string id = ride_id(n) + "/" + state + " from " + std::to_string(round);
      list.insert(list.end(), 2, {.id = id, .key = ride_id(n), .body = state});
    }
  std::mt19937 random(static_cast<std::uint32_t>(round));  // the same after a restart
  std::shuffle(list.begin(), list.end(), random);
  return list;
}

// A ride goes one way only. News that come early are held until the gap before them is filled.
Result<StateMachine> ride_machine() {
  std::vector<Transition> ways;
  for (std::size_t i = 1; i < states.size(); ++i) ways.push_back({states[i - 1], states[i]});
  StateMachineOptions options;
  options.hold_table = "ride_hold";
  return StateMachine::make(states, ways, options);
}

Handler ride_handler(StateMachine machine) {
  return each([machine = std::move(machine)](const Delivery& message,
                                             SqlTransaction& rides) -> Result<Outcome> {
    const Move move = ONCE_TRY(machine.move(rides, "ride", {{"id", message.key}}, message.body));
    // One piece of news may release others that were held: the ride went through all of these.
    for (const std::string& state : move.reached)
      ONCE_TRY(
          rides.execute("INSERT INTO history (ride, state) VALUES (?, ?)", {message.key, state}));
    return outcome_of(move, message.attempt);  // late news are refused, impossible ones set aside
  });
}

// Every ride went through every state, once, in order, and nothing is held any more.
Status check(Store& rides) {
  std::vector<std::string> expected;
  for (int n = 0; n < ride_count; ++n)
    for (const std::string& state : states) expected.push_back(ride_id(n) + " " + state);
  ONCE_TRY(stage::same("history", rides,
                       "SELECT ride || ' ' || state FROM history"
                       " ORDER BY CAST(substr(ride, 6) AS INTEGER), n",
                       expected));
  std::vector<std::string> done;
  for (int n = 0; n < ride_count; ++n) done.push_back(ride_id(n) + " done");
  return stage::same("rides", rides,
                     "SELECT id || ' ' || state FROM ride ORDER BY CAST(substr(id, 6) AS INTEGER)",
                     done);
}

Result<std::string> run(const stage::Arguments& arguments) {
  auto rides = ONCE_TRY(open_store("sqlite:" + arguments.directory + "/rides.db"));
  ONCE_TRY(stage::set_up(
      *rides,
      {"CREATE TABLE IF NOT EXISTS ride (id TEXT PRIMARY KEY, state TEXT NOT NULL)",
       "CREATE TABLE IF NOT EXISTS ride_hold (id TEXT, state TEXT, PRIMARY KEY (id, state))",
       "CREATE TABLE IF NOT EXISTS history (n INTEGER PRIMARY KEY, ride TEXT, state TEXT)"}));
  const StateMachine machine = ONCE_TRY(ride_machine());

  PipelineOptions options;
  options.scope = "rides/news";
  options.id = IdRule{};  // tells what one gateway sent twice; the state machine tells the rest
  for (int round = 1; round <= arguments.rounds; ++round) {
    ONCE_TRY(
        stage::send(arguments.directory, "news", "gateway " + std::to_string(round), news(round)));
    ONCE_TRY(stage::consume(arguments.directory, "news", *rides, ride_handler(machine), options));
  }
  ONCE_TRY(check(*rides));
  return std::to_string(ride_count) + " rides, each through every state once, in order";
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = stage::arguments(argc, argv);
  if (!arguments) return stage::end(fail(arguments.error()));
  return stage::end(run(*arguments));
}
