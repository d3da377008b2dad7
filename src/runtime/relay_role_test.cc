// SPDX-License-Identifier: Apache-2.0
// Several relays of one store: one sends, the others stand by.
#include <set>

#include "runtime/relay_testing.h"
#include "runtime/role.h"

namespace once::testing {
namespace {

class RelayRole : public RelayBorders {
 protected:
  ClaimStore& claims() { return *static_cast<Store&>(store_).claims(); }
  static Role role(ClaimStore& claims, Clock& clock, std::string owner) {
    return Role(claims, {.scope = "once.test", .id = "x", .owner = std::move(owner)}, clock);
  }
};

TEST_F(RelayRole, one_relay_sends_and_the_other_stands_by_without_an_error) {
  auto first = relay("first"), second = relay("second");
  for (std::size_t i = 0; i < 20; ++i) {
    enqueue(5 * i, 5);
    ASSERT_EQ(first->step().value(), 5u);
    enqueue(5 * i + 100, 0);
    ASSERT_EQ(second->step().value(), 0u);
    clock_.step(400);
  }
  EXPECT_EQ(second->state().sent, 0u);
  expect_each_once(100);
}

// A destination forgets producers that are quiet for a week.
TEST_F(RelayRole, a_producer_that_is_quiet_for_weeks_is_not_forgotten) {
  constexpr std::int64_t hour_ms = 3'600'000, day_ms = 24 * hour_ms;
  sink_.forget_producers_after(clock_, 7 * day_ms);
  auto first = relay("first");
  enqueue(0, 5);
  drain(*first);
  for (int hours = 0; hours < 30 * 24; ++hours) {
    clock_.step(hour_ms);
    ASSERT_EQ(first->step().value(), 0u);
  }
  enqueue(5, 5);
  drain(*first);
  first.reset();
  // Restarted every few days, with nothing to send.
  const auto restarted = [&] {
    return Relay::make(
               store_, [this](std::string_view) { return shared(sink_); },
               {.name = "relay", .destinations = {"paid"}, .owner = "restarted"}, clock_)
        .value();
  };
  for (int lives = 0; lives < 10; ++lives) {
    auto relay = restarted();
    for (int hours = 0; hours < 3 * 24; ++hours) {
      clock_.step(hour_ms);
      ASSERT_EQ(relay->step().value(), 0u);
    }
  }
  auto last = restarted();
  enqueue(10, 5);
  drain(*last);
  expect_each_once(15);
}

// It can be away for some days, too.
TEST_F(RelayRole, a_quiet_destination_that_is_away_is_renewed_when_it_is_back) {
  constexpr std::int64_t hour_ms = 3'600'000, day_ms = 24 * hour_ms;
  sink_.forget_producers_after(clock_, 7 * day_ms);
  bool away = false;
  auto relay = Relay::make(
                   store_,
                   [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
                     if (away) return fail(Remedy::retry, "away", "no answer");
                     return shared(sink_);
                   },
                   {.name = "relay", .destinations = {"paid"}, .owner = "here"}, clock_)
                   .value();
  enqueue(0, 5);
  drain(*relay);
  for (int hours = 0; hours < 12 * 24; ++hours) {
    away = hours > 24 && hours < 6 * 24;
    clock_.step(hour_ms);
    ASSERT_TRUE(relay->step());
  }
  enqueue(5, 5);
  drain(*relay);
  expect_each_once(10);
}

TEST_F(RelayRole, the_one_that_stands_by_says_who_sends) {
  auto first = relay("first"), second = relay("second");
  enqueue(0, 5);
  ASSERT_EQ(first->step().value(), 5u);
  enqueue(5, 5);
  ASSERT_EQ(second->step().value(), 0u);
  EXPECT_EQ(second->state().sender, "first");
  drain(*first);
  EXPECT_EQ(first->state().sender, "");
  ASSERT_EQ(second->step().value(), 0u);
  EXPECT_EQ(second->state().sender, "") << "nothing is pending";
}

TEST_F(RelayRole, a_relay_that_ends_is_followed_within_a_second) {
  auto first = relay("first"), second = relay("second");
  enqueue(0, 5);
  drain(*first);
  enqueue(5, 5);
  ASSERT_EQ(second->step().value(), 0u);
  first.reset();
  clock_.step(1000);
  drain(*second);
  expect_each_once(10);
}

TEST_F(RelayRole, a_relay_that_is_frozen_is_followed_when_its_lease_ends_and_stands_by_then) {
  auto frozen = relay("frozen"), second = relay("second");
  enqueue(0, 5);
  drain(*frozen);
  enqueue(5, 5);
  clock_.step(4000);
  ASSERT_EQ(second->step().value(), 0u);
  clock_.step(1001);
  drain(*second);
  enqueue(10, 5);
  ASSERT_EQ(frozen->step().value(), 0u) << "awake again: losing the role is not an error";
  drain(*second);
  second.reset();
  enqueue(15, 5);
  clock_.step(1000);
  drain(*frozen);
  expect_each_once(20);
}

// Awake again it believes that it has the role: the lease is not due, and fences have to hold.
TEST_F(RelayRole, a_relay_that_lost_the_role_unawares_is_fenced_and_stands_by) {
  auto zombie = relay("zombie");
  enqueue(0, 5);
  drain(*zombie);
  std::unique_ptr<Relay> second;
  bool frozen = true;
  sink_.set_faults(
      [&]() -> Status {
        if (!std::exchange(frozen, false)) return {};
        clock_.step(5001);
        second = relay("second");
        drain(*second);
        return {};
      },
      {});
  enqueue(5, 5);
  ASSERT_EQ(zombie->step().value(), 0u);
  EXPECT_EQ(zombie->state().sender, "another relay");
  expect_each_once(10);
  enqueue(10, 5);
  clock_.step(100);
  ASSERT_EQ(zombie->step().value(), 0u);
  EXPECT_EQ(zombie->state().sender, "second");
  drain(*second);
  expect_each_once(15);
}

TEST_F(RelayRole, relays_in_any_interleaving_send_each_row_once) {
  std::vector<std::unique_ptr<Relay>> relays;
  for (const char* owner : {"a", "b", "c"}) relays.push_back(relay(owner, 3));
  std::uint64_t random = 7;
  const auto draw = [&](std::uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % below;
  };
  std::size_t count = 0;
  for (int i = 0; i < 3000; ++i) {
    if (draw(4) == 0) enqueue(count++, 1);
    if (draw(50) == 0) clock_.step(static_cast<std::int64_t>(draw(6000)));
    auto& chosen = relays[draw(3)];
    if (draw(100) == 0) chosen = relay("new " + std::to_string(i), 3);
    const auto left = chosen->step();
    ASSERT_TRUE(left) << left.error().text;
  }
  relays.resize(1);
  clock_.step(6000);
  drain(*relays[0]);
  expect_each_once(count);
}

TEST_F(RelayRole, a_sink_is_open_only_while_the_role_is_held) {
  int opened = 0;
  const auto counted = [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
    ++opened;
    return std::shared_ptr<Sink>(&sink_, [&](Sink*) { --opened; });
  };
  const auto made = [&](const std::string& owner) {
    return Relay::make(store_, counted, {.name = "relay", .owner = owner}, clock_).value();
  };
  auto first = made("first"), second = made("second");
  enqueue(0, 5);
  drain(*first);
  enqueue(5, 5);
  ASSERT_EQ(second->step().value(), 0u);
  EXPECT_EQ(opened, 1);
  clock_.step(5001);
  drain(*second);
  EXPECT_EQ(opened, 2) << "the first does not know yet";
  ASSERT_EQ(first->step().value(), 0u);  // nothing is pending, but the role is looked after
  EXPECT_EQ(opened, 1);
  second.reset();
  EXPECT_EQ(opened, 0);
}

TEST_F(RelayRole, a_sink_that_is_busy_is_waited_for) {
  bool busy = true;
  auto waiting = Relay::make(
                     store_,
                     [&](std::string_view) -> Result<std::shared_ptr<Sink>> {
                       if (busy) return fail(Remedy::stop, "busy", "another process writes");
                       return shared(sink_);
                     },
                     {.name = "relay"}, clock_)
                     .value();
  enqueue(0, 5);
  EXPECT_EQ(waiting->step().error().remedy, Remedy::retry);
  busy = false;
  drain(*waiting);
  expect_each_once(5);
}

TEST_F(RelayRole, the_role_of_a_process_that_died_here_is_free_at_once) {
  // This process's identity with another start: a process that is gone.
  Role probe(claims(), {.scope = "once.test", .id = "probe"}, clock_);
  ASSERT_TRUE(probe.hold().value());
  std::string owner = claims().claims("once.test", {}, "probe", 1).value()[0].owner;
  const std::size_t last = owner.rfind(' ') - 1;
  owner[last] = owner[last] == '1' ? '2' : '1';
  auto* dead = new Role(claims(), {.scope = "once.test", .id = "x", .owner = owner}, clock_);
  ASSERT_TRUE(dead->hold().value());
  Role heir(claims(), {.scope = "once.test", .id = "x"}, clock_);
  EXPECT_TRUE(heir.hold().value());
  delete dead;  // too late to give anything back
  EXPECT_TRUE(heir.hold().value());
  heir.doubt();
  EXPECT_TRUE(heir.hold().value());
}

TEST_F(RelayRole, a_lost_answer_to_a_claim_does_not_lock_a_process_out) {
  store_.set_commit_fault([] { return MemoryStore::CommitFault::lost_after; });
  Role mine = role(claims(), clock_, "mine");
  EXPECT_FALSE(mine.hold());
  store_.set_commit_fault({});
  EXPECT_TRUE(mine.hold().value());
  Role other = role(claims(), clock_, "other");
  EXPECT_FALSE(other.hold().value());
  EXPECT_EQ(other.holder(), "mine");
}

TEST_F(RelayRole, a_clock_that_is_set_back_does_not_keep_the_role_of_the_dead) {
  auto* dead = new Role(claims(), {.scope = "once.test", .id = "x", .owner = "dead"}, clock_);
  ASSERT_TRUE(dead->hold().value());
  clock_.jump(-50 * 3'600'000);
  Role heir = role(claims(), clock_, "heir");
  std::int64_t waited_ms = 0;
  while (!heir.hold().value() && waited_ms < 60'000) {
    clock_.step(100);
    waited_ms += 100;
  }
  EXPECT_LE(waited_ms, 11'000);
  delete dead;
}

TEST_F(RelayRole, a_role_is_renewed_for_as_long_as_it_is_looked_after) {
  Role mine = role(claims(), clock_, "mine"), other = role(claims(), clock_, "other");
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(mine.hold().value());
    ASSERT_FALSE(other.hold().value());
    clock_.step(900);
  }
  mine.release();
  clock_.step(500);
  EXPECT_TRUE(other.hold().value());
}

}  // namespace
}  // namespace once::testing
