// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "live/live_suite.h"

namespace once::testing {

// A commit that the server carries out after its client has given it up for lost.
class LateCommit : public LiveSuite {};

TEST_P(LateCommit, is_waited_for_by_whoever_looks_whether_it_happened) {
  ChaosProxy proxy(server().port());
  auto store = open(server().url_at(proxy.port()));
  const Position from = store->take(scope_, "p0").value();
  // A connection of this store breaks, as it does when the answer to a commit is lost ...
  {
    auto broken = store->begin(scope_).value();
    ASSERT_TRUE(broken->sql()->query("SELECT 1"));
    proxy.cut_all();
    ASSERT_FALSE(broken->sql()->query("SELECT 1"));
  }
  // ... and what it was about to commit is still open on the server.
  auto elsewhere = open();
  auto late = elsewhere->begin(scope_).value();
  ASSERT_TRUE(late->advance("p0", from, 5));
  ASSERT_TRUE(late->sql()->query("SELECT 1"));  // sent
  Result<Position> seen;
  std::atomic<bool> answered = false;
  std::thread looker([&] {
    do seen = store->position(scope_, "p0");
    while (!seen && seen.error().remedy == Remedy::retry);
    answered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(answered);
  ASSERT_TRUE(late->commit());
  looker.join();
  ASSERT_TRUE(seen) << seen.error().text;
  EXPECT_EQ(*seen, (Position{5, from.fence}));
}

}  // namespace once::testing
