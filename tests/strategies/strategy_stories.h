// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>
#include <once/pipeline.h>

#include "strategies/strategy_suite.h"
#include "testing/random.h"
#include "testing/script_source.h"

namespace once::testing {

// Strategies in the handlers of a pipeline, as users have them.
class StrategyStories : public StrategySuite {
 protected:
  // Every message has an id of its own, as those of a second click or of a producer that resends
  // have: the ledger cannot tell them.
  void send(const std::string& key, const std::string& body) {
    const std::string id = "m" + std::to_string(++sent_);
    source_.add("p0", {.id = id, .key = key, .body = body, .headers = {}, .timestamp_ms = 1000});
  }

  Statistics run(Store& store, const Handler::Each& handler) {
    source_.announce("p0");
    PipelineOptions options;
    options.scope = "shop";
    options.id = IdRule{};
    options.stop_at_end = true;
    options.batch_wait_ms = 1;
    options.batch_count_max = 20;
    auto pipeline = Pipeline::make(source_, store, each(handler), options).value();
    const Status done = pipeline->run();
    EXPECT_TRUE(done) << done.error().text;
    return pipeline->statistics();
  }

  // Moves rides, and notes each state that one reaches.
  static Handler::Each follow(StateMachine machine, EarlyPolicy early = {}) {
    return [machine = std::move(machine), early](const Delivery& message,
                                                 Transaction& rides) -> Result<Outcome> {
      const Move move = ONCE_TRY(machine.move(rides, "ride", {{"id", message.key}}, message.body));
      for (const std::string& state : move.reached)
        ONCE_TRY(add_effect(rides, std::string(message.key) + " " + state));
      return outcome_of(move, message.attempt, early);
    };
  }

  ScriptSource source_;
  int sent_ = 0;
};

TEST_P(StrategyStories, H15_whoever_clicks_twice_has_one_vote) {
  for (const char* voter : {"ann", "bob", "ann", "cem", "bob", "ann"}) send(voter, "for 7");
  const auto store = open();
  const Statistics books =
      run(*store, [](const Delivery& vote, Transaction& votes) -> Result<Outcome> {
        switch (ONCE_TRY(unique(votes, "flow", {{"transfer", vote.body}, {"account", vote.key}}))) {
          case UniqueAnswer::present: return rejected("voted before");
          case UniqueAnswer::inserted: break;
        }
        ONCE_TRY(add_effect(votes, vote.key));
        return applied();
      });
  EXPECT_EQ(effects_of(*store), (std::vector<std::string>{"ann", "bob", "cem"}));
  EXPECT_EQ(books.applied, 3u);
  EXPECT_EQ(books.rejected, 3u);
}

TEST_P(StrategyStories, rides_whose_messages_are_shuffled_and_doubled_all_arrive_in_order) {
  constexpr int rides = 20;
  const std::vector<std::string> way{"created", "assigned",  "departed",
                                     "arrived", "picked_up", "done"};
  std::vector<std::pair<std::string, std::string>> messages;
  for (int ride = 0; ride < rides; ++ride)
    for (const std::string& state : way)
      messages.insert(messages.end(), 2, {"r" + std::to_string(ride), state});
  Random random(7);
  for (std::size_t i = messages.size(); i > 1; --i)
    std::swap(messages[i - 1], messages[random.below(i)]);
  for (const auto& [ride, state] : messages) send(ride, state);

  const auto store = open();
  const Statistics books = run(*store, follow(ride_machine({.hold_table = "ride_hold"})));
  std::map<std::string, std::vector<std::string>> reached;
  for (const std::string& effect : effects_of(*store)) {
    const std::size_t space = effect.find(' ');
    reached[effect.substr(0, space)].push_back(effect.substr(space + 1));
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(rides));
  for (const auto& [ride, states] : reached) EXPECT_EQ(states, way) << ride;
  EXPECT_EQ(books.applied + books.rejected, messages.size());
  EXPECT_GT(books.rejected, 0u);  // the late ones are stale
  EXPECT_EQ(books.parked, 0u);
  EXPECT_EQ(books.retried, 0u);
}

TEST_P(StrategyStories, an_impossible_message_is_parked_and_an_early_one_after_its_attempts) {
  for (const char* state : {"created", "assigned", "departed"}) send("r1", state);
  send("r1", "cancelled");  // too late for that
  send("r1", "done");       // and nobody will fill the gap
  send("r1", "arrived");
  const auto store = open();
  const Statistics books = run(*store, follow(ride_machine(), {.attempts_max = 3, .after_ms = 1}));
  EXPECT_EQ(effects_of(*store),
            (std::vector<std::string>{"r1 created", "r1 assigned", "r1 departed", "r1 arrived"}));
  EXPECT_EQ(books.applied, 4u);
  EXPECT_EQ(books.parked, 2u);
  EXPECT_EQ(books.retried, 2u);
  const auto parked = store->records()->parked("shop", 0, 10).value();
  ASSERT_EQ(parked.size(), 2u);
  EXPECT_EQ(parked[0].reason, "impossible: it is departed, no way leads to cancelled");
  EXPECT_EQ(parked[1].reason,
            "early: it is departed, done came too soon; given up after 3 attempts");
}

}  // namespace once::testing
