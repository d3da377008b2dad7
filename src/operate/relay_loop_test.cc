// SPDX-License-Identifier: Apache-2.0
#include "operate/relay_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace once::operate {
namespace {

// Steps as a test has written them; the sender that others see stays until it is changed.
class ScriptRelay final : public Relay {
 public:
  struct Turn {
    Result<std::size_t> result;
    std::string sender = {};
  };

  explicit ScriptRelay(std::deque<Turn> turns) : turns_(std::move(turns)) {}

  Result<std::size_t> step() override {
    const Turn turn = std::move(turns_.front());
    turns_.pop_front();
    state_.sender = turn.sender;
    if (turn.result) state_.sent += *turn.result;
    return turn.result;
  }
  RelayState state() const override { return state_; }

 private:
  std::deque<Turn> turns_;
  RelayState state_;
};

tl::unexpected<Error> away() { return fail(Remedy::retry, "away", "nobody answers"); }

TEST(RelayLoop, sends_without_a_rest_until_nothing_waits) {
  ScriptRelay relay({{2}, {1}, {0}});
  std::vector<std::int64_t> rests;
  ASSERT_TRUE(run_relay(relay, {.idle_ms = 7}, [&](const RelayStep& step) {
    rests.push_back(step.rest_ms);
    return !step.is_idle();
  }));
  EXPECT_EQ(rests, (std::vector<std::int64_t>{0, 0, 7}));
  EXPECT_EQ(relay.state().sent, 3U);
}

TEST(RelayLoop, is_not_idle_while_another_relay_sends) {
  ScriptRelay relay({{0, "host:1"}, {0}});
  std::vector<bool> idle;
  ASSERT_TRUE(run_relay(relay, {}, [&](const RelayStep& step) {
    idle.push_back(step.is_idle());
    return !step.is_idle();
  }));
  EXPECT_EQ(idle, (std::vector<bool>{false, true}));
}

TEST(RelayLoop, rests_longer_and_longer_while_a_destination_is_away) {
  ScriptRelay relay({{away()}, {away()}, {away()}, {1}, {away()}, {0}});
  std::vector<std::int64_t> rests;
  ASSERT_TRUE(run_relay(relay, {.idle_ms = 10, .away_ms_max = 30}, [&](const RelayStep& step) {
    rests.push_back(step.rest_ms);
    return !step.is_idle();
  }));
  EXPECT_EQ(rests, (std::vector<std::int64_t>{20, 30, 30, 0, 20, 10}));
}

TEST(RelayLoop, answers_what_was_away_when_it_is_ended_then) {
  ScriptRelay relay({{1}, {away()}});
  const Status done =
      run_relay(relay, {}, [](const RelayStep& step) { return step.away == nullptr; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().tag, "away");
}

TEST(RelayLoop, ends_by_itself_with_an_error_that_lasts) {
  ScriptRelay relay({{1}, {fail(Remedy::stop, "diverged", "the destination is ahead")}});
  const Status done = run_relay(relay, {}, [](const RelayStep&) { return true; });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().tag, "diverged");
}

}  // namespace
}  // namespace once::operate
