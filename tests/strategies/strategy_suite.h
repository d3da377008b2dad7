// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "strategies/ground.h"

namespace once::testing {

// What every strategy answers on every store; the races are in strategy_races.h.
class StrategySuite : public ::testing::TestWithParam<GroundFactory> {
 protected:
  // Contenders of other processes open the store themselves: here it is open only while it is used.
  void SetUp() override {
    ground_ = GetParam().make();
    if (!open()->traits().sql) return;
    ground_->define(ground_->effect_table());
    for (const std::string& table : suite_tables()) ground_->define(table);
  }

  std::shared_ptr<Store> open() {
    auto store = ground_->open();
    EXPECT_NE(store, nullptr);
    return store;
  }

  // Inserts a row that a test needs.
  void given(std::string_view table, Columns key, Columns rest) {
    const auto store = open();
    const auto made = committed(
        *store, [&](Transaction& transaction) { return unique(transaction, table, key, rest); });
    ASSERT_TRUE(made) << made.error().text;
    ASSERT_EQ(*made, UniqueAnswer::inserted);
  }

  std::unique_ptr<Ground> ground_;
};

inline StateMachine ride_machine(StateMachineOptions options = {}) {
  return StateMachine::make(
             {"created", "assigned", "departed", "arrived", "picked_up", "done", "cancelled"},
             {{"created", "assigned"},
              {"assigned", "departed"},
              {"departed", "arrived"},
              {"arrived", "picked_up"},
              {"picked_up", "done"},
              {"created", "cancelled"},
              {"assigned", "cancelled"}},
             std::move(options))
      .value();
}

TEST_P(StrategySuite, unique_inserts_once_and_leaves_what_is_there) {
  const auto store = open();
  const auto pay = [&](std::int64_t amount) {
    return committed(*store, [&](Transaction& transaction) {
      return unique(transaction, "flow", {{"transfer", "t1"}, {"account", "A"}},
                    {{"amount", amount}});
    });
  };
  EXPECT_EQ(pay(100), UniqueAnswer::inserted);
  EXPECT_EQ(pay(999), UniqueAnswer::present);
  EXPECT_EQ(row_of(*store, "flow", {{"transfer", "t1"}, {"account", "A"}}, {"amount"}),
            (Row{std::int64_t{100}}));
}

TEST_P(StrategySuite, unique_tells_keys_apart_by_every_column) {
  const auto store = open();
  const auto answers = committed(*store, [&](Transaction& transaction) -> Result<int> {
    int inserted = 0;
    for (const char* transfer : {"a", "ab"})
      for (const char* account : {"c", "bc"})
        inserted +=
            ONCE_TRY(unique(transaction, "flow", {{"transfer", transfer}, {"account", account}})) ==
            UniqueAnswer::inserted;
    return inserted;
  });
  EXPECT_EQ(answers, 4);
}

TEST_P(StrategySuite, H02_a_unique_row_of_a_transaction_that_died_is_not_there) {
  const auto store = open();
  {
    auto transaction = store->begin("shop").value();
    EXPECT_EQ(unique(*transaction, "flow", {{"transfer", "t1"}, {"account", "A"}}),
              UniqueAnswer::inserted);
  }
  auto transaction = store->begin("shop").value();
  EXPECT_EQ(unique(*transaction, "flow", {{"transfer", "t1"}, {"account", "A"}}),
            UniqueAnswer::inserted);
}

TEST_P(StrategySuite, H14_a_key_with_null_is_refused) {
  const auto store = open();
  auto transaction = store->begin("shop").value();
  const auto answer = unique(*transaction, "flow", {{"transfer", nullptr}, {"account", "A"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().remedy, Remedy::park);
}

TEST_P(StrategySuite, version_writes_what_the_function_made_of_the_row) {
  given("account", {{"name", "A"}}, {{"balance", 500}, {"version", 1}});
  const auto store = open();
  const auto add = [&](std::string_view name, std::int64_t amount) {
    return committed(*store, [&](Transaction& transaction) {
      return version(transaction, "account", {{"name", name}}, {"balance"},
                     [&](Row& row) -> Result<Edit> {
                       const std::int64_t balance = number_of(row[0]) + amount;
                       if (balance < 0) return Edit::keep;
                       row[0] = balance;
                       return Edit::write;
                     });
    });
  };
  EXPECT_EQ(add("A", 100), VersionAnswer::changed);
  EXPECT_EQ(add("A", -1000), VersionAnswer::kept);
  EXPECT_EQ(add("B", 100), VersionAnswer::missing);
  EXPECT_EQ(row_of(*store, "account", {{"name", "A"}}, {"balance", "version"}),
            (Row{std::int64_t{600}, std::int64_t{2}}));
}

TEST_P(StrategySuite, H26_a_value_that_came_back_is_another_version) {
  given("account", {{"name", "A"}}, {{"balance", 500}, {"version", 1}});
  const auto store = open();
  const auto set = [&](std::int64_t expected, std::int64_t balance) {
    return committed(*store, [&](Transaction& transaction) {
      return version(transaction, "account", {{"name", "A"}}, expected, {{"balance", balance}});
    });
  };
  EXPECT_EQ(set(1, 600), VersionAnswer::changed);  // its answer is lost
  EXPECT_EQ(set(2, 500), VersionAnswer::changed);  // another takes 100
  EXPECT_EQ(set(1, 600), VersionAnswer::contended);
  EXPECT_EQ(row_of(*store, "account", {{"name", "A"}}, {"balance", "version"}),
            (Row{std::int64_t{500}, std::int64_t{3}}));
}

TEST_P(StrategySuite, a_ride_goes_its_way_and_late_messages_are_stale) {
  const StateMachine ride = ride_machine();
  const auto store = open();
  const auto move = [&](std::string_view to) {
    return committed(*store,
                     [&](Transaction& transaction) {
                       return ride.move(transaction, "ride", {{"id", "r1"}}, to, {{"driver", to}});
                     })
        .value()
        .kind;
  };
  EXPECT_EQ(move("assigned"), Move::Kind::early);  // nothing is there yet
  EXPECT_EQ(move("created"), Move::Kind::moved);
  EXPECT_EQ(move("created"), Move::Kind::stale);
  EXPECT_EQ(move("departed"), Move::Kind::early);
  EXPECT_EQ(move("assigned"), Move::Kind::moved);
  EXPECT_EQ(move("departed"), Move::Kind::moved);
  EXPECT_EQ(move("arrived"), Move::Kind::moved);
  EXPECT_EQ(move("departed"), Move::Kind::stale);
  EXPECT_EQ(move("created"), Move::Kind::stale);
  EXPECT_EQ(move("cancelled"), Move::Kind::impossible);
  EXPECT_EQ(move("teleported"), Move::Kind::impossible);
  EXPECT_EQ(row_of(*store, "ride", {{"id", "r1"}}, {"state", "driver"}),
            (Row{"arrived", "arrived"}));
}

TEST_P(StrategySuite, a_state_that_the_machine_does_not_know_is_impossible_to_leave) {
  given("ride", {{"id", "r1"}}, {{"state", "lost"}});
  const auto store = open();
  auto transaction = store->begin("shop").value();
  const auto answer = ride_machine().move(*transaction, "ride", {{"id", "r1"}}, "assigned").value();
  EXPECT_EQ(answer, (Move{Move::Kind::impossible, "lost", "assigned", {}}));
}

TEST_P(StrategySuite, early_messages_are_held_until_the_gap_is_filled) {
  const StateMachine ride = ride_machine({.hold_table = "ride_hold"});
  const auto store = open();
  const auto move = [&](std::string_view to) {
    return committed(*store,
                     [&](Transaction& transaction) {
                       return ride.move(transaction, "ride", {{"id", "r1"}}, to, {{"driver", "d"}});
                     })
        .value();
  };
  using States = std::vector<std::string>;
  EXPECT_EQ(move("departed").kind, Move::Kind::held);  // before the ride was made
  EXPECT_EQ(move("departed").kind, Move::Kind::held);
  EXPECT_EQ(move("created").reached, (States{"created"}));
  EXPECT_EQ(move("done").kind, Move::Kind::held);
  EXPECT_EQ(move("picked_up").kind, Move::Kind::held);
  EXPECT_EQ(move("assigned").reached, (States{"assigned", "departed"}));
  EXPECT_EQ(move("departed").kind, Move::Kind::stale);
  EXPECT_EQ(move("arrived").reached, (States{"arrived", "picked_up", "done"}));
  EXPECT_EQ(move("done").kind, Move::Kind::stale);
  EXPECT_EQ(row_of(*store, "ride", {{"id", "r1"}}, {"state"}), (Row{"done"}));
}

TEST_P(StrategySuite, every_order_of_the_messages_of_a_ride_ends_in_the_same_state) {
  const StateMachine ride = ride_machine({.hold_table = "ride_hold"});
  std::vector<std::string> order{"arrived", "assigned", "created", "departed", "picked_up"};
  const auto store = open();
  int number = 0;
  do {
    const std::string id = "r" + std::to_string(++number);
    std::vector<std::string> reached;
    const auto done = committed(*store, [&](Transaction& transaction) -> Result<bool> {
      reached.clear();
      for (int copy = 0; copy < 2; ++copy)
        for (const std::string& to : order) {
          const Move move = ONCE_TRY(ride.move(transaction, "ride", {{"id", id}}, to));
          reached.insert(reached.end(), move.reached.begin(), move.reached.end());
        }
      return true;
    });
    ASSERT_TRUE(done) << done.error().text;
    ASSERT_EQ(reached, (std::vector<std::string>{"created", "assigned", "departed", "arrived",
                                                 "picked_up"}));
    ASSERT_EQ(row_of(*store, "ride", {{"id", id}}, {"state"}), (Row{"picked_up"}));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(number, 120);
}

TEST_P(StrategySuite, row_lock_reads_what_it_locks_and_tells_what_is_missing) {
  given("account", {{"name", "A"}}, {{"balance", 500}, {"version", 1}});
  given("account", {{"name", "B"}}, {{"balance", 7}, {"version", 1}});
  const auto store = open();
  auto transaction = store->begin("shop").value();
  const auto lock = [&](std::initializer_list<Value> names, std::int64_t wait_ms_max = 0) {
    return row_lock(*transaction, "account", "name", names, {"balance", "name"}, wait_ms_max);
  };
  EXPECT_EQ(lock({"B", "A", "B"}).value().rows,
            (Rows{{std::int64_t{7}, "B"}, {std::int64_t{500}, "A"}, {std::int64_t{7}, "B"}}));
  EXPECT_EQ(lock({"A", "C"}, 20).value().answer, LockAnswer::missing);
  EXPECT_EQ(lock({}).value().answer, LockAnswer::locked);
}

TEST_P(StrategySuite, H16_a_fence_that_was_overtaken_writes_nothing) {
  given("stock", {{"item", "x"}}, {{"amount", 10}, {"fence", 0}});
  const auto store = open();
  const auto write = [&](std::string_view item, std::uint64_t fence, std::int64_t amount) {
    return committed(*store, [&](Transaction& transaction) {
      return fenced_write(transaction, "stock", {{"item", item}}, fence, {{"amount", amount}});
    });
  };
  EXPECT_EQ(write("x", 2, 9), FenceAnswer::written);
  EXPECT_EQ(write("x", 1, 8), FenceAnswer::stale);
  EXPECT_EQ(write("x", 2, 9), FenceAnswer::written);
  EXPECT_EQ(write("x", 3, 7), FenceAnswer::written);
  EXPECT_EQ(write("y", 3, 7), FenceAnswer::missing);
  const auto shut_out = committed(*store, [&](Transaction& transaction) {
    return fenced_write(transaction, "stock", {{"item", "x"}}, 4, {});
  });
  EXPECT_EQ(shut_out, FenceAnswer::written);
  EXPECT_EQ(write("x", 3, 6), FenceAnswer::stale);
  EXPECT_EQ(row_of(*store, "stock", {{"item", "x"}}, {"amount", "fence"}),
            (Row{std::int64_t{7}, std::int64_t{4}}));
}

// A is paused until its lease has run out; B takes the lock and writes; A wakes up.
TEST_P(StrategySuite, H16_a_paused_owner_of_a_lock_cannot_write_over_its_successor) {
  given("stock", {{"item", "x"}}, {{"amount", 10}, {"fence", 0}});
  const auto store = open();
  ClaimsOptions options;
  options.lease_ms = 20;
  options.renew_in_background = false;
  const auto a = Claims::make(*store, options).value();
  const auto b = Claims::make(*store, options).value();
  const auto write = [&](const FencedLock& lock, std::int64_t amount) {
    return committed(*store, [&](Transaction& transaction) {
      return fenced_write(transaction, "stock", {{"item", "x"}}, lock.fence(),
                          {{"amount", amount}});
    });
  };
  auto first = fenced_lock(*a, "stock x");
  ASSERT_TRUE(std::holds_alternative<FencedLock>(first));
  auto second = fenced_lock(*b, "stock x");
  for (int wait = 0; wait < 1000 && !std::holds_alternative<FencedLock>(second); ++wait) {
    ASSERT_TRUE(std::holds_alternative<InProgress>(second));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    second = fenced_lock(*b, "stock x");
  }
  FencedLock& paused = std::get<FencedLock>(first);
  FencedLock& successor = std::get<FencedLock>(second);
  EXPECT_GT(successor.fence(), paused.fence());
  EXPECT_EQ(write(successor, 9), FenceAnswer::written);
  EXPECT_EQ(write(paused, 5), FenceAnswer::stale);
  EXPECT_EQ(paused.release().error().tag, "superseded");
  EXPECT_TRUE(successor.release());
  EXPECT_EQ(row_of(*store, "stock", {{"item", "x"}}, {"amount"}), (Row{std::int64_t{9}}));
}

TEST_P(StrategySuite, a_lock_that_was_released_is_free_and_its_fence_grows) {
  const auto store = open();
  const auto claims = Claims::make(*store, {}).value();
  std::uint64_t last = 0;
  for (int round = 0; round < 4; ++round) {
    auto taken = fenced_lock(*claims, "stock x");
    ASSERT_TRUE(std::holds_alternative<FencedLock>(taken));
    EXPECT_GT(std::get<FencedLock>(taken).fence(), last);
    last = std::get<FencedLock>(taken).fence();
    EXPECT_TRUE(std::holds_alternative<InProgress>(fenced_lock(*claims, "stock x")));
    EXPECT_TRUE(std::holds_alternative<FencedLock>(fenced_lock(*claims, "stock y")));
    if (round == 2) continue;  // given back by its end
    EXPECT_TRUE(std::get<FencedLock>(taken).release());
  }
}

TEST_P(StrategySuite, a_token_is_redeemed_once_and_only_for_its_subject) {
  const auto store = open();
  const auto issued = committed(*store, [&](Transaction& transaction) {
    return issue_token(transaction, "token", "form 7", 60'000);
  });
  ASSERT_TRUE(issued) << issued.error().text;
  EXPECT_EQ(issued->size(), 32u);
  const auto redeem = [&](std::string_view subject, std::string_view token) {
    return committed(*store, [&](Transaction& transaction) {
      return redeem_token(transaction, "token", subject, token);
    });
  };
  EXPECT_EQ(redeem("form 8", *issued), TokenAnswer::unknown);
  EXPECT_EQ(redeem("form 7", "0123"), TokenAnswer::unknown);
  EXPECT_EQ(redeem("form 7", *issued), TokenAnswer::redeemed);
  EXPECT_EQ(redeem("form 7", *issued), TokenAnswer::used);
}

TEST_P(StrategySuite, a_token_that_has_expired_is_told_from_one_that_was_used) {
  JumpingClock clock;
  const auto store = open();
  auto transaction = store->begin("shop").value();
  const std::string used = issue_token(*transaction, "token", "s", 1'000, clock).value();
  const std::string unused = issue_token(*transaction, "token", "s", 1'000, clock).value();
  EXPECT_NE(used, unused);
  EXPECT_EQ(redeem_token(*transaction, "token", "s", used, clock), TokenAnswer::redeemed);
  clock.jump(2'000);
  EXPECT_EQ(redeem_token(*transaction, "token", "s", used, clock), TokenAnswer::used);
  EXPECT_EQ(redeem_token(*transaction, "token", "s", unused, clock), TokenAnswer::expired);
}

}  // namespace once::testing
