// SPDX-License-Identifier: Apache-2.0
// Stores and destinations that go back, are made anew, or are confused with others.
#include <algorithm>

#include "runtime/relay_testing.h"

namespace once::testing {
namespace {

using RelayPast = RelayBorders;

TEST_F(RelayPast, a_late_commit_with_a_smaller_number_is_sent_behind_what_has_a_sequence) {
  auto late = store_.begin("shop").value();
  ASSERT_TRUE(late->enqueue("paid", message(5)));  // draws the smallest number of all
  enqueue(0, 5);
  bool alive = true;
  sink_.set_faults({}, [&]() -> Status {
    if (alive) return {};
    return fail(Remedy::stop, "killed", "the relay dies before it is told");
  });
  alive = false;
  EXPECT_FALSE(relay()->step());
  alive = true;
  ASSERT_TRUE(late->commit());
  auto next = relay();
  drain(*next);
  expect_each_once(6);
  EXPECT_TRUE(store_.outbox()->destinations().value().empty());
}

TEST_F(RelayPast, two_stores_with_the_same_name_and_destination_lose_nothing) {
  MemoryStore other(clock_, "another-store");
  enqueue(0, 10);
  enqueue_at(other, 10, 10);
  auto first = relay(), second = relay_at(other);
  drain(*first);
  drain(*second);
  enqueue(20, 10);
  drain(*first);
  expect_each_once(30);
}

// A clone has sent other messages under the sequences that rows of the original have: counts agree.
TEST_F(RelayPast, what_a_clone_of_the_store_has_sent_is_not_taken_for_our_own) {
  enqueue(0, 10);
  drain(*relay());
  MemoryStore clone(clock_, "a-store");
  clone.restore(store_.snapshot());
  enqueue(10, 6);
  sink_.set_faults([] { return fail(Remedy::retry, "away", "the destination is away"); }, {});
  EXPECT_FALSE(relay()->step());  // has given them their sequences, and dies
  sink_.set_faults({}, {});
  enqueue_at(clone, 16, 4);
  drain(*relay_at(clone, "there"));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto refused = relay()->step();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "diverged");
    EXPECT_NE(refused.error().text.find("a copy of the store"), std::string::npos);
    EXPECT_NE(refused.error().text.find("`once outbox restart paid --reason"), std::string::npos);
  }
  restart_destination();
  drain(*relay());
  std::vector<std::string> ids = arrived();
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> expected;
  for (std::size_t i = 0; i < 20; ++i) expected.push_back(message(i).id);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(ids, expected);
}

TEST_F(RelayPast, a_store_that_went_back_stops_the_relay_before_anything_is_lost) {
  enqueue(0, 10);
  drain(*relay());
  const MemoryState backup = store_.snapshot();
  enqueue(10, 5);
  drain(*relay());
  store_.restore(backup);
  enqueue(15, 5);
  for (int attempt = 0; attempt < 3; ++attempt) {  // it does not get better by being tried again
    const auto refused = relay()->step();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().remedy, Remedy::stop);
    EXPECT_EQ(refused.error().tag, "diverged");
    EXPECT_NE(refused.error().text.find("the destination is ahead"), std::string::npos);
    EXPECT_NE(refused.error().text.find("`once outbox restart paid --reason"), std::string::npos);
    expect_each_once(15);
  }
  restart_destination();
  auto repaired = relay();
  drain(*repaired);
  expect_each_once(20);
}

TEST_F(RelayPast, a_store_that_went_back_to_before_a_restart_sends_nothing_twice) {
  enqueue(0, 10);
  drain(*relay());
  const MemoryState backup = store_.snapshot();
  restart_destination();
  enqueue(10, 10);
  drain(*relay());
  store_.restore(backup);
  enqueue(10, 10);  // produced again
  const auto refused = relay()->step();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "diverged");
  EXPECT_NE(refused.error().text.find("the destination is ahead"), std::string::npos);
  expect_each_once(20);
}

// The role tells `once outbox restart` which destinations are sent to.
TEST_F(RelayPast, a_relay_whose_destination_has_diverged_leaves_the_role_to_others) {
  enqueue(0, 10);
  drain(*relay());
  sink_.make_anew();
  enqueue(10, 5);
  auto stuck = relay();
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(stuck->step().error().tag, "diverged");
    const auto claims =
        static_cast<Store&>(store_).claims()->claims(relay_scope, std::nullopt, "paid", 1);
    ASSERT_EQ(claims->size(), 1u);
    EXPECT_NE(claims->front().state, ClaimState::running);
  }
  restart_destination();
  drain(*stuck);  // takes it up by itself
  std::vector<int> expected(15, 0);
  for (std::size_t i = 10; i < 15; ++i) expected[i] = 1;
  expect_times(expected);
}

TEST_F(RelayPast, what_a_store_that_went_back_produces_again_is_sent_again_after_a_restart) {
  enqueue(0, 10);
  drain(*relay());
  const MemoryState backup = store_.snapshot();
  enqueue(10, 5);
  drain(*relay());
  store_.restore(backup);
  enqueue(10, 5);
  EXPECT_EQ(relay()->step().error().tag, "diverged");
  restart_destination();
  drain(*relay());
  std::vector<int> expected(15, 1);
  for (std::size_t i = 10; i < 15; ++i) expected[i] = 2;
  expect_times(expected);
}

// Rows that were pending in the backup have their routes: they are the same messages.
TEST_F(RelayPast, a_store_that_went_back_to_where_rows_were_pending_needs_no_repair) {
  enqueue(0, 7);
  MemoryState backup;
  sink_.set_faults(
      [&]() -> Status {
        backup = store_.snapshot();
        return {};
      },
      {});
  drain(*relay());
  sink_.set_faults({}, {});
  store_.restore(backup);
  drain(*relay());
  enqueue(7, 3);
  drain(*relay());
  expect_each_once(10);
}

TEST_F(RelayPast, a_store_that_goes_back_under_a_running_relay_is_noticed) {
  auto running = relay();
  enqueue(0, 10);
  drain(*running);
  const MemoryState backup = store_.snapshot();
  enqueue(10, 5);
  drain(*running);
  store_.restore(backup);  // a failover: the relay's fence is that of before
  enqueue(15, 5);
  EXPECT_EQ(running->step().error().tag, "diverged");
  EXPECT_EQ(relay("another")->step().error().tag, "diverged") << "the role is free, and it knows";
  running.reset();
  EXPECT_EQ(relay()->step().error().tag, "diverged");
  restart_destination();
  drain(*relay());
  expect_each_once(20);
}

TEST_F(RelayPast, a_store_that_goes_back_after_a_receipt_was_lost_is_noticed) {
  auto running = relay();
  enqueue(0, 3);
  drain(*running);
  const MemoryState backup = store_.snapshot();
  enqueue(3, 3);
  sink_.set_faults({}, [] { return fail(Remedy::recheck, "lost", "the receipt was lost"); });
  EXPECT_FALSE(running->step());
  sink_.set_faults({}, {});
  store_.restore(backup);
  enqueue(6, 3);
  EXPECT_EQ(running->step().error().tag, "diverged");
  restart_destination();
  drain(*running);
  std::vector<int> times(9, 0);
  for (const std::string& id : arrived()) ++times.at(std::stoul(id.substr(1)));
  for (std::size_t i = 6; i < 9; ++i) EXPECT_EQ(times[i], 1) << i;
}

TEST_F(RelayPast, a_destination_made_anew_stops_the_relay_until_it_is_restarted) {
  enqueue(0, 10);
  drain(*relay());
  sink_.make_anew();
  enqueue(10, 5);
  const auto refused = relay()->step();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "diverged");
  EXPECT_NE(refused.error().text.find("the destination is behind"), std::string::npos);
  EXPECT_TRUE(arrived().empty());
  restart_destination();
  drain(*relay());
  std::vector<int> expected(15, 0);
  for (std::size_t i = 10; i < 15; ++i) expected[i] = 1;
  expect_times(expected);
}

TEST_F(RelayPast, a_destination_made_anew_under_a_running_relay_is_noticed) {
  auto running = relay();
  enqueue(0, 10);
  drain(*running);
  sink_.make_anew();
  enqueue(10, 5);
  EXPECT_EQ(running->step().value(), 0u);  // unknown there: it enters again
  EXPECT_EQ(running->step().error().tag, "diverged");
  restart_destination();
  drain(*running);  // a relay that runs takes up the repair
  std::vector<int> expected(15, 0);
  for (std::size_t i = 10; i < 15; ++i) expected[i] = 1;
  expect_times(expected);
}

TEST_F(RelayPast, more_rows_than_a_batch_may_have_been_given_routes) {
  enqueue(0, 40);
  int lives = 1;
  sink_.set_faults({}, [&]() -> Status {
    if (lives-- > 0) return fail(Remedy::stop, "killed", "the relay dies before it is told");
    return {};
  });
  EXPECT_FALSE(relay("large", 40)->step());
  drain(*relay("small", 3));
  expect_each_once(40);
}

TEST_F(RelayPast, a_restart_of_a_destination_fences_the_relay_that_runs) {
  auto running = relay();
  enqueue(0, 5);
  drain(*running);
  restart_destination();
  enqueue(5, 5);
  drain(*running);
  drain(*running);
  expect_each_once(10);
}

}  // namespace
}  // namespace once::testing
