// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "strategies/race.h"
#include "strategies/strategy_suite.h"

namespace once::testing {

class StrategyRaces : public StrategySuite {
 protected:
  static constexpr int rounds = 2000;

  static int count_of(const Answers& answers) { return static_cast<int>(answers.size()); }

  static std::string id_of(int round) { return "m" + std::to_string(round); }

  // Exactly one winner in each round, the other told so, and the effects of the winners in order.
  void check_books(const Answers& answers, std::int64_t winning, std::int64_t losing) {
    std::vector<std::string> expected;
    for (int round = 0; round < count_of(answers); ++round) {
      const auto& pair = answers[static_cast<std::size_t>(round)];
      const bool one =
          (pair[0] == winning && pair[1] == losing) || (pair[0] == losing && pair[1] == winning);
      ASSERT_TRUE(one) << "round " << round << ": " << pair[0] << " and " << pair[1];
      expected.push_back(id_of(round));
    }
    EXPECT_EQ(effects_of(*open()), expected);
  }
};

template <class Answer>
Result<std::int64_t> as_number(Result<Answer> answer) {
  return answer.map([](Answer value) { return static_cast<std::int64_t>(value); });
}

// The recipe that all of this replaces, so that it is known that these races would find it: look,
// then act.
TEST_P(StrategyRaces, H01_two_that_look_before_they_act_have_two_effects) {
  const auto answers = Race(*ground_).run(200, [](Store& store, int, Arena& arena) {
    return [&store, &arena](int round) -> Result<std::int64_t> {
      const std::string id = id_of(round);
      const bool there =
          !row_of(store, "flow", {{"transfer", id}, {"account", "A"}}, {"amount"}).empty();
      ++arena.looked;
      while (arena.looked < contenders * (round + 1) && !arena.broken) std::this_thread::yield();
      if (there) return 0;
      return committed(store, [&](Transaction& transaction) -> Result<std::int64_t> {
        ONCE_TRY(add_effect(transaction, id));
        ONCE_TRY(unique(transaction, "flow", {{"transfer", id}, {"account", "A"}}));
        return 1;
      });
    };
  });
  std::vector<std::string> expected;
  for (int round = 0; round < count_of(answers); ++round)
    expected.insert(expected.end(), 2, id_of(round));
  EXPECT_EQ(effects_of(*open()), expected);
}

TEST_P(StrategyRaces, H01_of_two_that_insert_the_same_flow_one_has_the_effect) {
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int contender, Arena&) {
    return [&store, contender](int round) {
      const std::string id = id_of(round);
      return as_number(committed(store, [&](Transaction& transaction) {
        return with_effect(transaction,
                           unique(transaction, "flow", {{"transfer", id}, {"account", "A"}},
                                  {{"amount", contender}}),
                           UniqueAnswer::inserted, id);
      }));
    };
  });
  check_books(answers, static_cast<int>(UniqueAnswer::inserted),
              static_cast<int>(UniqueAnswer::present));
  const auto store = open();
  for (int round = 0; round < count_of(answers); ++round) {  // the row is the winner's
    const std::string id = id_of(round);
    const Row row = row_of(*store, "flow", {{"transfer", id}, {"account", "A"}}, {"amount"});
    ASSERT_EQ(row.size(), 1u) << id;
    const auto winner = static_cast<std::size_t>(number_of(row[0]));
    ASSERT_EQ(answers[static_cast<std::size_t>(round)].at(winner),
              static_cast<int>(UniqueAnswer::inserted))
        << id;
  }
}

TEST_P(StrategyRaces, H26_of_two_that_know_the_same_version_one_writes) {
  given("account", {{"name", "A"}}, {{"balance", 500}, {"version", 0}});
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int, Arena&) {
    return [&store](int round) {
      return as_number(committed(store, [&](Transaction& transaction) {
        // The balance goes from 500 to 600 and back: only the version tells the rounds apart.
        return with_effect(transaction,
                           version(transaction, "account", {{"name", "A"}}, round,
                                   {{"balance", round % 2 == 0 ? 600 : 500}}),
                           VersionAnswer::changed, id_of(round));
      }));
    };
  });
  check_books(answers, static_cast<int>(VersionAnswer::changed),
              static_cast<int>(VersionAnswer::contended));
  EXPECT_EQ(
      row_of(*open(), "account", {{"name", "A"}}, {"balance", "version"}),
      (Row{std::int64_t{count_of(answers) % 2 == 0 ? 500 : 600}, std::int64_t{count_of(answers)}}));
}

TEST_P(StrategyRaces, H01_two_that_add_at_the_same_time_lose_no_addition) {
  given("account", {{"name", "A"}}, {{"balance", 0}, {"version", 0}});
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int, Arena&) {
    return [&store](int) {
      return committed(store, [&](Transaction& transaction) -> Result<std::int64_t> {
        std::int64_t made = -1;
        const auto add = [&](Row& row) -> Result<Edit> {
          row[0] = made = number_of(row[0]) + 1;
          return Edit::write;
        };
        const auto answer =
            ONCE_TRY(version(transaction, "account", {{"name", "A"}}, {"balance"}, add));
        if (answer != VersionAnswer::changed) return fail(Remedy::retry, "contended", "again");
        return made;
      });
    };
  });
  std::multiset<std::int64_t> made;
  std::multiset<std::int64_t> expected;
  std::int64_t round_start = 0;
  for (const auto& pair : answers) {  // each round has made the next two numbers
    ASSERT_EQ(std::min(pair[0], pair[1]), round_start + 1);
    ASSERT_EQ(std::max(pair[0], pair[1]), round_start + 2);
    round_start += 2;
    made.insert(pair.begin(), pair.end());
  }
  for (int number = 1; number <= round_start; ++number) expected.insert(number);
  EXPECT_EQ(made, expected);
  EXPECT_EQ(row_of(*open(), "account", {{"name", "A"}}, {"balance", "version"}),
            (Row{round_start, round_start}));
}

TEST_P(StrategyRaces, H01_of_two_that_move_the_same_ride_one_moves_it) {
  static const std::vector<std::string> way{"created", "assigned",  "departed",
                                            "arrived", "picked_up", "done"};
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int, Arena&) {
    return [&store, machine = ride_machine()](int round) {
      const std::string ride = "r" + std::to_string(round / 6);
      const std::string& to = way[static_cast<std::size_t>(round % 6)];
      return as_number(committed(store, [&](Transaction& transaction) -> Result<Move::Kind> {
        auto move = ONCE_TRY(machine.move(transaction, "ride", {{"id", ride}}, to));
        return with_effect<Move::Kind>(transaction, move.kind, Move::Kind::moved, id_of(round));
      }));
    };
  });
  check_books(answers, static_cast<int>(Move::Kind::moved), static_cast<int>(Move::Kind::stale));
  const auto store = open();
  for (int ride = 0; ride <= (count_of(answers) - 1) / 6; ++ride) {
    const int last = std::min(6 * ride + 5, count_of(answers) - 1);
    EXPECT_EQ(row_of(*store, "ride", {{"id", "r" + std::to_string(ride)}}, {"state"}),
              (Row{way[static_cast<std::size_t>(last % 6)]}));
  }
}

// One brings the message that fills the gap while the other brings the one behind it: whichever
// comes first, both states are reached, in order and once.
TEST_P(StrategyRaces, a_message_held_while_its_gap_is_filled_is_not_forgotten) {
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int contender, Arena&) {
    return [&store, contender, machine = ride_machine({.hold_table = "ride_hold"})](int round) {
      const std::string ride = "r" + std::to_string(round);
      const char* to = contender == 0 ? "created" : "assigned";
      return committed(store, [&](Transaction& transaction) -> Result<std::int64_t> {
        const Move move = ONCE_TRY(machine.move(transaction, "ride", {{"id", ride}}, to));
        for (const std::string& state : move.reached)
          ONCE_TRY(add_effect(transaction, ride + " " + state));
        return static_cast<std::int64_t>(move.reached.size());
      });
    };
  });
  std::vector<std::string> expected;
  for (int round = 0; round < count_of(answers); ++round) {
    const auto& pair = answers[static_cast<std::size_t>(round)];
    ASSERT_EQ(pair[0] + pair[1], 2) << round;
    expected.push_back("r" + std::to_string(round) + " created");
    expected.push_back("r" + std::to_string(round) + " assigned");
  }
  EXPECT_EQ(effects_of(*open()), expected);
}

inline Status set_balance(Transaction& transaction, const std::string& name, std::int64_t balance) {
  const auto row = ONCE_TRY(guarded_row(transaction, "account", {{"name", name}}));
  ONCE_TRY(row->update({}, {{"balance", balance}}));
  return {};
}

// Each moves money the other way, and names the rows in the other order.
TEST_P(StrategyRaces, two_that_lock_the_same_rows_in_opposite_order_neither_wait_nor_lose) {
  given("account", {{"name", "A"}}, {{"balance", 0}, {"version", 0}});
  given("account", {{"name", "B"}}, {{"balance", 0}, {"version", 0}});
  const auto answers = Race(*ground_).run(rounds, [](Store& store, int contender, Arena&) {
    return [&store, contender](int round) {
      const std::array<std::string, 2> names{contender == 0 ? "A" : "B",
                                             contender == 0 ? "B" : "A"};
      const std::int64_t amount = contender == 0 ? 3 : 1;
      return committed(store, [&](Transaction& transaction) -> Result<std::int64_t> {
        const auto locked = ONCE_TRY(
            row_lock(transaction, "account", "name", {names[0], names[1]}, {"balance"}, 1'000));
        if (locked.answer != LockAnswer::locked) return fail(Remedy::retry, "busy", "again");
        const std::int64_t from = number_of(locked.rows[0][0]) - amount;
        const std::int64_t to = number_of(locked.rows[1][0]) + amount;
        ONCE_TRY(set_balance(transaction, names[0], from));
        ONCE_TRY(set_balance(transaction, names[1], to));
        ONCE_TRY(add_effect(transaction, id_of(round) + "/" + names[0]));
        return from;
      });
    };
  });
  const std::vector<std::string> effects = effects_of(*open());
  ASSERT_EQ(effects.size(), 2 * answers.size());
  std::int64_t balance = 0;  // of A, followed through the effects in their order
  for (std::size_t i = 0; i < effects.size(); ++i) {
    const std::size_t round = i / 2;
    const bool from_a = effects[i].ends_with("/A");
    ASSERT_EQ(effects[i], id_of(static_cast<int>(round)) + (from_a ? "/A" : "/B"));
    ASSERT_TRUE(i % 2 == 0 || effects[i] != effects[i - 1]) << effects[i];
    balance += from_a ? -3 : 1;
    ASSERT_EQ(answers[round][from_a ? 0 : 1], from_a ? balance : -balance) << effects[i];
  }
  EXPECT_EQ(row_of(*open(), "account", {{"name", "A"}}, {"balance"}), (Row{balance}));
  EXPECT_EQ(balance, -2 * count_of(answers));
}

TEST_P(StrategyRaces, H16_two_that_want_the_same_lock_are_never_in_it_together) {
  given("stock", {{"item", "x"}}, {{"amount", 0}, {"fence", 0}});
  Race race(*ground_);
  const auto answers = race.run(rounds, [](Store& store, int, Arena& arena) {
    ClaimsOptions options;
    options.renew_in_background = false;
    std::shared_ptr<Claims> claims = Claims::make(store, options).value();
    return [&store, &arena, claims](int) -> Result<std::int64_t> {
      auto taken = fenced_lock(*claims, "stock x");
      for (int wait = 0; wait < 60'000 && !std::holds_alternative<FencedLock>(taken); ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        taken = fenced_lock(*claims, "stock x");
      }
      auto* lock = std::get_if<FencedLock>(&taken);
      if (lock == nullptr) return fail(Remedy::stop, "busy", "the lock is never free");
      if (arena.inside.fetch_add(1) != 0) ++arena.collisions;
      const auto written = committed(store, [&](Transaction& transaction) -> Result<FenceAnswer> {
        const auto row = ONCE_TRY(guarded_row(transaction, "stock", {{"item", "x"}}));
        const std::string_view column = "amount";
        const auto found = ONCE_TRY(row->read(std::span(&column, 1), Freshness::snapshot));
        return fenced_write(transaction, "stock", {{"item", "x"}}, lock->fence(),
                            {{"amount", number_of(found.value().at(0)) + 1}});
      });
      --arena.inside;
      if (!written || *written != FenceAnswer::written)
        return fail(Remedy::stop, "fenced", "the owner of the lock could not write");
      const auto fence = static_cast<std::int64_t>(lock->fence());
      ONCE_TRY(lock->release());
      return fence;
    };
  });
  EXPECT_EQ(race.collisions(), 0);
  std::int64_t last = 0;
  for (const auto& pair : answers) {
    ASSERT_NE(pair[0], pair[1]);
    ASSERT_GT(std::min(pair[0], pair[1]), last);
    last = std::max(pair[0], pair[1]);
  }
  EXPECT_EQ(row_of(*open(), "stock", {{"item", "x"}}, {"amount", "fence"}),
            (Row{std::int64_t{2 * count_of(answers)}, last}));
}

TEST_P(StrategyRaces, H01_of_two_that_redeem_the_same_token_one_does) {
  std::vector<std::string> tokens;
  {
    const auto store = open();
    const auto issued = committed(*store, [&](Transaction& transaction) -> Result<bool> {
      tokens.clear();
      for (int round = 0; round < rounds; ++round)
        tokens.push_back(ONCE_TRY(issue_token(transaction, "token", id_of(round), 3'600'000)));
      return true;
    });
    ASSERT_TRUE(issued) << issued.error().text;
  }
  const auto answers = Race(*ground_).run(rounds, [&](Store& store, int, Arena&) {
    return [&](int round) {
      return as_number(committed(store, [&](Transaction& transaction) {
        return with_effect(transaction,
                           redeem_token(transaction, "token", id_of(round),
                                        tokens[static_cast<std::size_t>(round)]),
                           TokenAnswer::redeemed, id_of(round));
      }));
    };
  });
  check_books(answers, static_cast<int>(TokenAnswer::redeemed),
              static_cast<int>(TokenAnswer::used));
}

}  // namespace once::testing
