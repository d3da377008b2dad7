// SPDX-License-Identifier: Apache-2.0
#include "runtime/event_log.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::SimClock;

const Error refused{Remedy::retry, "away", "connection refused", std::nullopt};

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest()
      : log_([this](const Event& event) { told_.push_back(event); }, clock_,
             {.grace_ms = 1'000, .repeat_ms = 30'000, .repeat_ms_max = 120'000}) {}

  void pass(std::int64_t ms) {
    clock_.step(ms);
    log_.tick();
  }
  void park(const std::string& reason, const std::string& group) {
    log_.count({.severity = Severity::warning, .kind = EventKind::message_parked, .text = reason},
               group);
  }
  std::vector<EventKind> kinds() const {
    std::vector<EventKind> kinds;
    for (const Event& event : told_) kinds.push_back(event.kind);
    return kinds;
  }
  using Kinds = std::vector<EventKind>;

  SimClock clock_;
  std::vector<Event> told_;
  EventLog log_;
  int lane_ = 0, other_lane_ = 0;  // their addresses are waiters
};

TEST_F(EventLogTest, an_outage_that_lasts_is_told_once_and_when_it_is_over) {
  log_.away(the_store, {}, &lane_, refused);
  EXPECT_EQ(log_.waiting(), "connection refused");
  pass(999);
  EXPECT_TRUE(told_.empty());
  pass(1);
  ASSERT_EQ(kinds(), Kinds{EventKind::store_away});
  EXPECT_EQ(told_[0].severity, Severity::warning);
  EXPECT_EQ(told_[0].tag, "away");
  EXPECT_EQ(told_[0].text, "waiting for the store: connection refused");
  for (int i = 0; i < 20; ++i) {
    pass(1'000);
    log_.away(the_store, {}, &lane_, refused);
  }
  EXPECT_EQ(told_.size(), 1u);
  log_.back(the_store, {}, &lane_);
  ASSERT_EQ(kinds(), (Kinds{EventKind::store_away, EventKind::store_back}));
  EXPECT_EQ(told_[1].duration_ms, 21'000);
  EXPECT_EQ(told_[1].severity, Severity::info);
  EXPECT_EQ(told_[1].text, "the store is back after 21.0 s");
  EXPECT_EQ(log_.waiting(), "");
}

TEST_F(EventLogTest, what_is_over_soon_is_not_told) {
  log_.away(the_store, {}, &lane_, refused);
  pass(500);
  log_.back(the_store, {}, &lane_);
  pass(60'000);
  log_.away(the_store, {}, &lane_, refused);
  pass(500);
  EXPECT_TRUE(told_.empty());
}

TEST_F(EventLogTest, an_outage_is_told_again_at_growing_intervals) {
  log_.away(the_source, {}, &lane_, refused);
  std::vector<std::int64_t> told_at_s;
  for (std::int64_t second = 1; second <= 500; ++second) {
    const std::size_t before = told_.size();
    pass(1'000);
    if (told_.size() > before) told_at_s.push_back(second);
  }
  EXPECT_EQ(told_at_s, (std::vector<std::int64_t>{1, 31, 91, 211, 331, 451}));
  EXPECT_EQ(told_.back().duration_ms, 451'000);
}

TEST_F(EventLogTest, a_dependency_is_back_when_nobody_waits_for_it_any_more) {
  log_.away(the_store, {}, &lane_, refused);
  log_.away(the_store, {}, &other_lane_, refused);
  pass(1'000);
  log_.back(the_store, {}, &lane_);
  EXPECT_EQ(kinds(), Kinds{EventKind::store_away});
  EXPECT_FALSE(log_.waiting().empty());
  log_.back(the_store, {}, &other_lane_);
  EXPECT_EQ(kinds(), (Kinds{EventKind::store_away, EventKind::store_back}));
}

TEST_F(EventLogTest, a_waiter_that_leaves_says_nothing_about_the_dependency) {
  log_.away(the_store, {}, &lane_, refused);
  pass(1'000);
  log_.leave(the_store, {}, &lane_);
  EXPECT_EQ(log_.waiting(), "");
  pass(100'000);
  EXPECT_EQ(kinds(), Kinds{EventKind::store_away});
  log_.back(the_store, {}, &other_lane_);
  EXPECT_EQ(kinds(), (Kinds{EventKind::store_away, EventKind::store_back}));
}

TEST_F(EventLogTest, destinations_are_away_one_by_one) {
  log_.away(a_destination, "paid", &lane_, refused);
  log_.away(a_destination, "sent", &lane_, refused);
  pass(1'000);
  log_.back(a_destination, "paid", &lane_);
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(told_[2].kind, EventKind::destination_back);
  EXPECT_EQ(told_[2].subject, "paid");
  EXPECT_EQ(told_[2].text, "the destination paid is back after 1.0 s");
}

TEST_F(EventLogTest, the_first_of_a_kind_is_told_at_once_and_the_others_are_counted) {
  park("no account 1", "no account #");
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].count, 1u);
  for (int i = 2; i <= 500; ++i) park("no account " + std::to_string(i), "no account #");
  park("no id", "no id");
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].text, "no id");
  pass(29'999);
  EXPECT_EQ(told_.size(), 2u);
  pass(1);
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(told_[2].count, 499u);
  EXPECT_EQ(told_[2].text, "no account 500");
  pass(1'000'000);
  EXPECT_EQ(told_.size(), 3u) << "nothing happened since";
  park("no account 7", "no account #");
  ASSERT_EQ(told_.size(), 4u) << "after a long pause it is told at once again";
}

TEST_F(EventLogTest, what_was_held_back_is_told_at_the_end) {
  for (int i = 0; i < 10; ++i) park("no id", "no id");
  log_.finish();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].count, 9u);
  log_.finish();
  EXPECT_EQ(told_.size(), 2u);
}

TEST_F(EventLogTest, the_number_of_groups_has_a_limit) {
  for (std::size_t i = 0; i < 3 * EventLog::groups_max; ++i)
    park("reason", "reason " + std::to_string(i));
  EXPECT_EQ(told_.size(), EventLog::groups_max + 1);
  log_.finish();
  std::uint64_t sum = 0;
  for (const Event& event : told_) sum += event.count;
  EXPECT_EQ(sum, 3 * EventLog::groups_max);
}

TEST_F(EventLogTest, an_observer_that_throws_does_no_harm_and_nobody_need_observe) {
  EventLog throwing([](const Event&) { throw std::runtime_error("no"); }, clock_);
  throwing.tell({.text = "hello"});
  EventLog silent({}, clock_);
  silent.away(the_store, {}, &lane_, refused);
  clock_.step(5'000);
  silent.tick();
  EXPECT_EQ(silent.waiting(), "connection refused");
}

TEST_F(EventLogTest, every_kind_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(EventKind::clocks_differ); ++i)
    names.insert(name_of(static_cast<EventKind>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(EventKind::clocks_differ) + 1);
  EXPECT_FALSE(names.contains("?"));
}

TEST(Figures, every_number_has_a_name_a_unit_and_a_help_and_reads_its_own_value) {
  Statistics statistics;
  statistics.applied = 7;
  statistics.lag = 12;
  std::set<std::string_view> names;
  for (const auto& figure : pipeline_figures()) {
    EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
    EXPECT_FALSE(figure.unit.empty() || figure.help.empty()) << figure.name;
    const std::int64_t expected = figure.name == "applied" ? 7 : figure.name == "lag" ? 12 : 0;
    EXPECT_EQ(figure.read(statistics), expected) << figure.name;
  }
}

// A server that is away comes back; what is exhausted here may not.
TEST_F(EventLogTest, what_is_exhausted_is_known_by_how_long_it_lasts) {
  const Error exhausted{Remedy::retry, "exhausted", "there is no memory left", std::nullopt};
  log_.away(the_store, {}, &lane_, refused);
  pass(60'000);
  EXPECT_FALSE(log_.exhausted_for(10'000)) << "it is away, which is something else";
  log_.away(the_store, {}, &lane_, exhausted);
  pass(9'999);
  EXPECT_FALSE(log_.exhausted_for(10'000));
  pass(1);
  EXPECT_EQ(log_.exhausted_for(10'000), exhausted);
  log_.away(the_store, {}, &lane_, refused);
  EXPECT_FALSE(log_.exhausted_for(10'000));
  log_.away(the_store, {}, &lane_, exhausted);
  log_.back(the_store, {}, &lane_);
  pass(60'000);
  EXPECT_FALSE(log_.exhausted_for(10'000));
}

}  // namespace
}  // namespace once
