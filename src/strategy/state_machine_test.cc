// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "strategy/fake_sql_testing.h"
#include "strategy/guarded_row.h"

namespace once {
namespace {

using testing::FakeSql;
using Texts = std::vector<std::string>;

StateMachine payment(StateMachineOptions options = {}) {
  return StateMachine::make({"pending", "paid", "shipped", "cancelled"},
                            {{"pending", "paid"},
                             {"paid", "shipped"},
                             {"pending", "cancelled"},
                             {"paid", "cancelled"}},
                            std::move(options))
      .value();
}

std::string refusal(std::vector<std::string> states, std::vector<Transition> ways,
                    StateMachineOptions options = {}) {
  const auto made = StateMachine::make(std::move(states), std::move(ways), std::move(options));
  if (made) return "accepted";
  EXPECT_EQ(made.error().tag, "config");
  EXPECT_EQ(made.error().remedy, Remedy::stop);
  return made.error().text;
}

TEST(StateMachine, is_checked_when_it_is_made) {
  EXPECT_EQ(refusal({"a"}, {}), "accepted");
  EXPECT_NE(refusal({}, {}).find("0 states"), std::string::npos);
  EXPECT_NE(refusal({"a", ""}, {{"a", ""}}).find("without a name"), std::string::npos);
  EXPECT_NE(refusal({"a", "a"}, {}).find("declared twice"), std::string::npos);
  EXPECT_NE(refusal({"a", "b"}, {{"a", "c"}}).find("c is not a declared state"), std::string::npos);
  EXPECT_NE(refusal({"a", "b"}, {{"c", "b"}}).find("c is not a declared state"), std::string::npos);
  EXPECT_NE(refusal({"a", "b"}, {{"a", "b"}, {"a", "b"}}).find("declared twice"),
            std::string::npos);
  EXPECT_NE(refusal({"a", "b", "c"}, {{"a", "b"}}).find("no way leads from the first state a to c"),
            std::string::npos);
  EXPECT_NE(refusal({"a"}, {}, {.column = "the state"}).find("not a name"), std::string::npos);
  EXPECT_NE(refusal({"a"}, {}, {.hold_table = "a b"}).find("not a name"), std::string::npos);
  EXPECT_EQ(refusal(std::vector<std::string>(65, "x"), {}).find("accepted"), std::string::npos);
}

TEST(StateMachine, H26_a_circle_is_refused_since_a_state_that_comes_back_is_no_precondition) {
  EXPECT_NE(refusal({"open", "closed"}, {{"open", "closed"}, {"closed", "open"}}).find("twice"),
            std::string::npos);
  EXPECT_NE(refusal({"open"}, {{"open", "open"}}).find("back to open"), std::string::npos);
}

TEST(StateMachine, moves_by_one_statement_that_names_the_states_before) {
  FakeSql sql(SqlDialect::postgresql);
  const Move move =
      payment().move(sql, "payment", {{"id", 7}}, "cancelled", {{"reason", "late"}}).value();
  EXPECT_EQ(move, (Move{Move::Kind::moved, "", "cancelled", {"cancelled"}}));
  EXPECT_EQ(sql.statements,
            (Texts{"UPDATE payment SET reason = ?, state = ? WHERE id = ? AND state IN (?, ?)"}));
  EXPECT_EQ(sql.values[0], (Row{"late", "cancelled", std::int64_t{7}, "pending", "paid"}));
}

TEST(StateMachine, looks_with_a_lock_at_the_row_that_it_could_not_move) {
  FakeSql sql(SqlDialect::mysql);
  sql.touched = {0};
  sql.found = {{{"shipped"}}};
  EXPECT_EQ(payment().move(sql, "payment", {{"id", 7}}, "paid").value(),
            (Move{Move::Kind::stale, "shipped", "paid", {}}));
  EXPECT_EQ(sql.statements.at(1), "SELECT state FROM payment WHERE id = ? FOR UPDATE");
}

// Another moved the row between our write and our look: it would go now, so it goes.
TEST(StateMachine, tries_again_when_the_row_has_come_to_where_the_way_begins) {
  FakeSql sql(SqlDialect::postgresql);
  sql.touched = {0, 1};
  sql.found = {{{"paid"}}};
  EXPECT_EQ(payment().move(sql, "payment", {{"id", 7}}, "shipped").value().kind, Move::Kind::moved);
  EXPECT_EQ(sql.statements.size(), 3u);
}

TEST(StateMachine, does_not_try_for_ever) {
  FakeSql sql(SqlDialect::postgresql);
  sql.touched.assign(100, 0);
  sql.found.assign(100, {{"paid"}});
  const auto move = payment().move(sql, "payment", {{"id", 7}}, "shipped");
  ASSERT_FALSE(move);
  EXPECT_EQ(move.error().remedy, Remedy::retry);
  EXPECT_LT(sql.statements.size(), 20u);
}

TEST(StateMachine, a_row_that_can_neither_be_inserted_nor_found_is_not_early) {
  FakeSql sql(SqlDialect::mysql);
  sql.touched.assign(100, 0);
  const auto move = payment().move(sql, "payment", {{"id", 7}}, "pending");
  ASSERT_FALSE(move);
  EXPECT_EQ(move.error().remedy, Remedy::park);
  sql.touched = {0, 1};  // removed and made again
  EXPECT_EQ(payment().move(sql, "payment", {{"id", 7}}, "pending").value().kind, Move::Kind::moved);
}

// Whoever makes the row and whoever finds none meet at the first state in the hold table; so one
// of them waits for the other and then sees what it has written.
TEST(StateMachine, a_hold_table_is_written_before_the_row_is_made_and_read_after) {
  const StateMachine machine = payment({.hold_table = "payment_hold"});
  FakeSql maker(SqlDialect::postgresql);
  EXPECT_EQ(machine.move(maker, "payment", {{"id", 7}}, "pending").value().kind, Move::Kind::moved);
  const std::string hold =
      "INSERT INTO payment_hold (id, state) VALUES (?, ?) ON CONFLICT (id, state) DO NOTHING";
  const std::string held = "SELECT state FROM payment_hold WHERE id = ? AND state = ? FOR UPDATE";
  EXPECT_EQ(
      maker.statements,
      (Texts{hold, "INSERT INTO payment (id, state) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
             held, held}));
  FakeSql finder(SqlDialect::postgresql);
  finder.touched = {0};
  EXPECT_EQ(machine.move(finder, "payment", {{"id", 7}}, "shipped").value().kind, Move::Kind::held);
  const std::string look = "SELECT state FROM payment WHERE id = ? FOR UPDATE";
  EXPECT_EQ(finder.statements, (Texts{"UPDATE payment SET state = ? WHERE id = ? AND state IN (?)",
                                      look, hold, look, hold}));
  EXPECT_EQ(finder.values[2], (Row{std::int64_t{7}, "pending"}));
  EXPECT_EQ(finder.values[4], (Row{std::int64_t{7}, "shipped"}));
}

TEST(StateMachine, what_becomes_of_a_move_is_an_outcome) {
  using Kind = Move::Kind;
  const auto outcome = [](Kind kind, std::uint32_t attempt = 1) {
    return outcome_of({kind, "paid", "pending", {}}, attempt, {.attempts_max = 3, .after_ms = 50});
  };
  EXPECT_EQ(outcome(Kind::moved), applied());
  EXPECT_EQ(outcome(Kind::held), applied("held"));
  EXPECT_EQ(outcome(Kind::stale), rejected("stale: it is paid, pending came late"));
  EXPECT_EQ(outcome(Kind::impossible), parked("impossible: it is paid, no way leads to pending"));
  EXPECT_EQ(outcome(Kind::early, 2), retry("early: it is paid, pending came too soon", 50));
  EXPECT_EQ(outcome(Kind::early, 3),
            parked("early: it is paid, pending came too soon; given up after 3 attempts"));
}

TEST(Precondition, H26_a_value_as_precondition_is_refused_with_the_schedule_that_breaks_it) {
  const Error error = precondition_equals("account", "balance").error();
  EXPECT_EQ(error.tag, "config");
  for (const char* part : {"500", "600", "500 again", "applied twice", "`version`", "account"})
    EXPECT_NE(error.text.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace once
