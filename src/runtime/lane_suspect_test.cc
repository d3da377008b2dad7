// SPDX-License-Identifier: Apache-2.0
// Statements that a store refuses as if it refused them for every message: whose fault it is shows
// by what it does for the others.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "runtime/lane_testing.h"

namespace once {
namespace {

using testing::apply_effect;
using testing::effects_of;
using testing::numbered;

Error refused(Remedy remedy, const std::string& tag) {
  Error error{remedy, tag, "the store: cannot run \"UPDATE\": " + tag + "; check it", std::nullopt};
  error.cause = Cause::handler;
  return error;
}

// Removes these from what a partition should have had as effects.
std::vector<std::string> without(std::vector<std::string> ids, const std::set<std::string>& gone) {
  std::erase_if(ids, [&](const std::string& id) { return gone.contains(id); });
  return ids;
}

class LaneSuspect : public testing::LaneFixture {
 protected:
  LaneSuspect() {
    handler_ =
        each([this](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          if (const auto error = fails_(std::string(delivery.id))) return fail(*error);
          return apply_effect(delivery, transaction);
        });
    options_.observer = [this](const Event& event) { events_.push_back(event); };
  }

  LaneParts parts() override {
    LaneParts all = LaneFixture::parts();
    all.events = &log_;
    return all;
  }
  // These fail with it whenever they are tried.
  void poison(const std::set<std::string>& ids, Error error) {
    fails_ = [ids, error](const std::string& id) -> std::optional<Error> {
      return ids.contains(id) ? std::optional(error) : std::nullopt;
    };
  }
  Lane with(std::size_t count) {
    fill(count);
    Lane lane = make();
    own(lane);
    lane.push(source_.batch("p0"));
    return lane;
  }
  // Until it ends with an error, letting time pass; unset: it did not in so many steps.
  std::optional<Error> end_of(Lane& lane, int steps_max = 2'000) {
    for (int i = 0; i < steps_max; ++i) {
      const auto step = lane.step();
      if (!step) return step.error();
      clock_.step(step->wait_ms);
    }
    return std::nullopt;
  }
  std::set<std::string> parked_ids() {
    std::set<std::string> ids;
    for (const ParkedRecord& record : parked_records()) ids.insert(record.message.id);
    return ids;
  }

  std::function<std::optional<Error>(const std::string&)> fails_ = [](const std::string&) {
    return std::nullopt;
  };
  std::vector<Event> events_;
  EventLog log_{[this](const Event& event) { events_.push_back(event); }, clock_};
};

TEST_F(LaneSuspect, a_message_that_fails_while_others_pass_is_parked_wherever_it_is) {
  const std::set<std::string> bad{"m0", "m1", "m17", "m50", "m51", "m52", "m98", "m99"};
  poison(bad, refused(Remedy::stop, "denied"));
  Lane lane = with(100);
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), without(numbered(100), bad));
  EXPECT_EQ(parked_ids(), bad);
  EXPECT_EQ(parked_records().front().reason, refused(Remedy::stop, "denied").text);
  EXPECT_EQ(position().offset, 100);
  EXPECT_EQ(counters_.applied, 92u);
}

TEST_F(LaneSuspect, a_batch_handler_need_not_say_which_message_it_was) {
  handler_ = batch([](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
    for (Work& one : work) {
      if (one.delivery->id == "m7") return fail(refused(Remedy::stop, "sql"));
      ONCE_TRY(apply_effect(*one.delivery, transaction));
    }
    return {};
  });
  Lane lane = with(64);
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), without(numbered(64), {"m7"}));
  EXPECT_EQ(parked_ids(), std::set<std::string>{"m7"});
}

TEST_F(LaneSuspect, what_no_message_can_run_ends_the_run_and_names_the_first) {
  for (const std::size_t count : {1UL, 2UL, 100UL, 300UL}) {
    fails_ = [](const std::string&) { return refused(Remedy::stop, "sql"); };
    source_ = testing::ScriptSource();
    Lane lane = with(count);
    const auto error = end_of(lane);
    ASSERT_TRUE(error) << count;
    EXPECT_EQ(error->remedy, Remedy::stop);
    EXPECT_EQ(error->tag, "sql");
    for (const char* part : {"offset 0 of partition \"p0\"", "id \"m0\"",
                             "`once park add FILE --partition p0 --offset 0 --reason "})
      EXPECT_NE(error->text.find(part), std::string::npos) << error->text;
    EXPECT_TRUE(parked_records().empty());
    EXPECT_EQ(position().offset, -1);
  }
}

TEST_F(LaneSuspect, messages_that_run_other_statements_prove_nothing) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id != "m0") return apply_effect(delivery, transaction);
        ONCE_TRY(transaction.erase("something else"));
        return fail(refused(Remedy::stop, "sql"));
      });
  Lane lane = with(50);
  const auto error = end_of(lane);
  ASSERT_TRUE(error);
  EXPECT_NE(error->text.find("id \"m0\""), std::string::npos) << error->text;
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  EXPECT_TRUE(parked_records().empty());
}

// Each of them is a duplicate or runs something else, and the statement fails for all that run it.
TEST_F(LaneSuspect, messages_between_that_prove_nothing_do_not_hide_that_none_can_run_it) {
  for (const bool is_known : {true, false}) {
    source_ = testing::ScriptSource();
    handler_ = batch([&](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
      for (Work& one : work) {
        if (one.delivery->body == "other") {
          ONCE_TRY(transaction.erase("something else"));
          continue;
        }
        Error error = refused(Remedy::stop, "sql");
        if (is_known) error.message = one.message;
        ONCE_TRY(testing::write_effect(*one.delivery, transaction));
        return fail(std::move(error));
      }
      return {};
    });
    for (const char* id : {"m0", "m0", "m1", "m2", "m3", "m4", "m4", "m5"})
      add(id, id == std::string("m2") || id == std::string("m3") ? "other" : "this");
    Lane lane = make();
    own(lane);
    lane.push(source_.batch("p0"));
    const auto error = end_of(lane);
    ASSERT_TRUE(error) << is_known;
    EXPECT_NE(error->text.find("id \"m0\""), std::string::npos) << error->text;
    EXPECT_TRUE(parked_records().empty());
    EXPECT_TRUE(effects_of(store_, "p0").empty());
  }
}

TEST_F(LaneSuspect, what_passed_before_counts_for_a_message_that_comes_alone) {
  poison({"m10"}, refused(Remedy::stop, "denied"));
  fill(11);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 10));
  drain(lane);
  lane.push(source_.batch("p0", 10, 1));
  drain(lane);
  EXPECT_EQ(parked_ids(), std::set<std::string>{"m10"});
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

// A table is dropped while messages come one by one: not all of them are parked.
TEST_F(LaneSuspect, what_passed_before_counts_for_a_few_messages_only) {
  fill(100);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 50));
  drain(lane);
  fails_ = [](const std::string&) { return refused(Remedy::stop, "sql"); };
  std::optional<Error> error;
  for (std::size_t i = 50; i < 100 && !error; ++i) {
    lane.push(source_.batch("p0", i, 1));
    error = end_of(lane, 20);
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(parked_records().size(), 10u);
  EXPECT_NE(error->text.find("offset 60"), std::string::npos) << error->text;
}

// ... while many are there: none is.
TEST_F(LaneSuspect, a_table_that_is_dropped_in_the_middle_parks_nothing) {
  fill(400);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 100));
  drain(lane);
  fails_ = [](const std::string&) { return refused(Remedy::stop, "sql"); };
  lane.push(source_.batch("p0", 100, 300));
  const auto error = end_of(lane);
  ASSERT_TRUE(error);
  EXPECT_NE(error->text.find("offset 100"), std::string::npos) << error->text;
  EXPECT_TRUE(parked_records().empty());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(100));
}

// A right that is granted, a lock that is released: while it was in the way, many have failed.
TEST_F(LaneSuspect, what_passes_in_the_end_parks_nobody) {
  for (const Remedy remedy : {Remedy::stop, Remedy::retry}) {
    for (const int until : {3, 20, 40}) {
      MemoryStore store(clock_);
      Counters counters;
      int calls = 0;
      const Handler handler =
          each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
            if (++calls < until) return fail(refused(remedy, "conflict"));
            return apply_effect(delivery, transaction);
          });
      testing::ScriptSource source;
      for (const std::string& id : numbered(60))
        source.add("p0", {.id = id, .key = "k", .body = id, .headers = {}, .timestamp_ms = 1000});
      Lane lane({.store = store,
                 .clock = clock_,
                 .handler = handler,
                 .options = options_,
                 .counters = counters});
      lane.own("p0", store.take("shop", "p0").value());
      lane.push(source.batch("p0"));
      drain(lane);
      EXPECT_EQ(effects_of(store, "p0"), numbered(60)) << until;
      EXPECT_EQ(counters.parked, 0u) << until;
    }
  }
}

TEST_F(LaneSuspect, what_is_tried_again_has_an_end_for_a_message_that_fails_alone) {
  const std::set<std::string> bad{"m3", "m4", "m30", "m38", "m39"};
  poison(bad, refused(Remedy::retry, "timeout"));
  Lane lane = with(40);
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), without(numbered(40), bad));
  EXPECT_EQ(parked_ids(), bad);
  const std::string reason = parked_records().front().reason;
  EXPECT_EQ(reason.find("gave up after"), 0u) << reason;
  EXPECT_NE(reason.find("timeout"), std::string::npos) << reason;
}

TEST_F(LaneSuspect, what_is_tried_again_for_all_messages_is_waited_for_and_told) {
  fails_ = [](const std::string&) { return refused(Remedy::retry, "timeout"); };
  Lane lane = with(40);
  EXPECT_FALSE(end_of(lane, 500));
  EXPECT_TRUE(parked_records().empty());
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(events_.front().kind, EventKind::statement_failing);
  EXPECT_NE(events_.front().text.find("timeout"), std::string::npos) << events_.front().text;
  fails_ = [](const std::string&) { return std::nullopt; };
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(40));
  EXPECT_EQ(events_.back().kind, EventKind::statement_passes);
  EXPECT_TRUE(parked_records().empty());
}

TEST_F(LaneSuspect, a_message_that_waits_for_others_is_judged_by_those_that_come) {
  poison({"m0"}, refused(Remedy::stop, "denied"));
  fill(3);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(lane.step());
  EXPECT_TRUE(parked_records().empty());
  lane.push(source_.batch("p0", 1, 2));
  drain(lane);
  EXPECT_EQ(parked_ids(), std::set<std::string>{"m0"});
  EXPECT_EQ(effects_of(store_, "p0"), (std::vector<std::string>{"m1", "m2"}));
}

TEST_F(LaneSuspect, another_partition_shows_it_too) {
  poison({"m0"}, refused(Remedy::stop, "denied"));
  fill(1);
  fill(5, "p1", "n");
  Lane lane = make();
  own(lane);
  own(lane, "p1");
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p1"));
  drain(lane);
  EXPECT_EQ(parked_ids(), std::set<std::string>{"m0"});
  EXPECT_EQ(effects_of(store_, "p1"), numbered(5, "n"));
}

// With every size of batch the same is parked, and the weaker promises do it, too.
TEST_F(LaneSuspect, neither_batch_size_nor_semantics_matters) {
  const std::set<std::string> bad{"m0", "m9", "m10", "m29"};
  poison(bad, refused(Remedy::stop, "denied"));
  for (const Semantics semantics :
       {Semantics::effectively_once, Semantics::at_least_once, Semantics::at_most_once}) {
    for (const std::size_t size : {1UL, 2UL, 7UL, 1000UL}) {
      // Its position has moved before its work: one by one, no other can be tried behind it.
      if (semantics == Semantics::at_most_once && size == 1) continue;
      options_.semantics = semantics;
      options_.batch_count_max = size;
      MemoryStore store(clock_);
      Counters counters;
      testing::ScriptSource source;
      for (const std::string& id : numbered(30))
        source.add("p0", {.id = id, .key = "k", .body = id, .headers = {}, .timestamp_ms = 1000});
      Lane lane({.store = store,
                 .clock = clock_,
                 .handler = handler_,
                 .options = options_,
                 .counters = counters});
      lane.own("p0", store.take("shop", "p0").value());
      lane.push(source.batch("p0"));
      drain(lane);
      EXPECT_EQ(effects_of(store, "p0"), without(numbered(30), bad)) << size;
      EXPECT_EQ(counters.parked, 4u) << size;
    }
  }
}

TEST_F(LaneSuspect, commits_whose_answers_are_lost_meanwhile_change_nothing) {
  poison({"m5"}, refused(Remedy::stop, "denied"));
  Lane lane = with(20);
  int commits = 0;
  store_.set_commit_fault([&] {
    using Fault = MemoryStore::CommitFault;
    constexpr Fault faults[] = {Fault::none, Fault::lost_after, Fault::lost_before, Fault::refused};
    return faults[++commits % 4];
  });
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), without(numbered(20), {"m5"}));
  EXPECT_EQ(parked_ids(), std::set<std::string>{"m5"});
}

}  // namespace
}  // namespace once
