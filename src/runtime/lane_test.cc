// SPDX-License-Identifier: Apache-2.0
#include "runtime/lane.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/failpoint.h"
#include "runtime/lane_testing.h"

namespace once {
namespace {

using testing::apply_effect;
using testing::effects_of;
using testing::numbered;
using testing::write_effect;
using CommitFault = MemoryStore::CommitFault;

class LaneTest : public testing::LaneFixture {};

TEST_F(LaneTest, gives_each_message_one_effect_in_order) {
  fill(2500);
  Lane lane = make();
  own(lane);
  for (std::size_t from = 0; from < 2500; from += 500) lane.push(source_.batch("p0", from, 500));
  EXPECT_EQ(drain(lane).size(), 5u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(2500));
  EXPECT_EQ(position().offset, 2500);
  EXPECT_EQ(counters_.applied, 2500u);
}

// The three of an order come in one batch, so that their ids are admitted together.
TEST_F(LaneTest, an_id_that_stayed_free_is_free_for_another_message_of_the_same_batch) {
  const auto say = [&](const std::string& id, const std::string& body) {
    source_.add("p0", {.id = id, .key = "k", .body = body, .headers = {}, .timestamp_ms = 1000});
  };
  for (const char* id : {"m0", "m1", "m2"})
    for (const char* body : {"made", "paid", "sent"}) say(id, body);
  const auto only_paid = [](const Delivery& delivery,
                            KeyValueTransaction& transaction) -> Result<Outcome> {
    if (delivery.body != "paid") return no_effect();
    return apply_effect(delivery, transaction);
  };
  handler_ = each(only_paid);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(3));
  EXPECT_EQ(counters_.no_effect, 3u);
  EXPECT_EQ(counters_.mismatched, 3u);  // "sent" uses the id of what was paid, and is parked
  EXPECT_EQ(parked_records().size(), 3u);
}

// Tombstones and heartbeats have no id, and it is nobody's fault.
TEST_F(LaneTest, what_is_not_wanted_is_passed_over_and_leaves_only_the_position) {
  for (int i = 0; i < 40; ++i) {
    const std::string name = "m" + std::to_string(i / 2);
    const bool is_heartbeat = i % 2 == 1;
    source_.add("p0", {.id = is_heartbeat ? "" : name,
                       .key = "k",
                       .body = is_heartbeat ? "beat" : "body of " + name,
                       .headers = {},
                       .timestamp_ms = 1000});
  }
  options_.wanted = [](const Delivery& delivery) -> Result<bool> {
    if (delivery.id == "m7") return fail(Remedy::park, "value", "cannot be told");
    return delivery.body != "beat";
  };
  for (const bool batched : {false, true}) {
    options_.scope = batched ? "batched" : "single";
    if (batched) {
      handler_ = batch([](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
        for (const Work& one : work) {
          transaction.on_behalf_of(one.message);
          ONCE_TRY(transaction.put("batched/" + std::string(one.delivery->id), "1"));
        }
        return {};
      });
    }
    const std::uint64_t passed = counters_.passed;
    const std::uint64_t no_effect = counters_.no_effect;
    Lane lane = make();
    own(lane);
    lane.push(source_.batch("p0"));
    drain(lane);
    EXPECT_EQ(counters_.passed - passed, 20u);
    EXPECT_EQ(counters_.no_effect, no_effect);
    EXPECT_EQ(position().offset, 40);
    const auto parked = parked_records();
    ASSERT_EQ(parked.size(), 1u);
    EXPECT_EQ(parked[0].reason, "cannot be told");
    EXPECT_EQ(store_.records()->ledger(options_.scope, "", 1000).value().size(), 19u);
  }
  EXPECT_EQ(effects_of(store_, "p0").size(), 19u);
}

TEST_F(LaneTest, redelivered_batches_are_told_by_the_position) {
  fill(100);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p0", 40));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(100));
  EXPECT_EQ(counters_.skipped, 160u);
}

TEST_F(LaneTest, resent_messages_are_told_by_the_ledger_also_inside_one_batch) {
  fill(50);
  fill(50);  // the same ids again at new offsets
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(50));
  EXPECT_EQ(counters_.duplicates, 50u);
  EXPECT_EQ(position().offset, 100);
}

TEST_F(LaneTest, without_ids_the_position_alone_counts_each_delivery_once) {
  options_.id.reset();
  fill(30);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0").size(), 30u);
  EXPECT_TRUE(store_.snapshot().scopes.at("shop").ledger.empty());
}

TEST_F(LaneTest, several_partitions_share_a_transaction) {
  fill(10, "p0", "a");
  fill(10, "p1", "b");
  Lane lane = make();
  own(lane, "p0");
  own(lane, "p1");
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p1"));
  drain(lane);
  EXPECT_EQ(counters_.transactions, 1u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10, "a"));
  EXPECT_EQ(effects_of(store_, "p1"), numbered(10, "b"));
}

TEST_F(LaneTest, a_message_that_throws_is_parked_after_its_attempts_and_harms_no_other) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        ONCE_TRY(write_effect(delivery, transaction));
        if (delivery.id == "m7") throw std::runtime_error("no such account");
        return applied();
      });
  options_.retry.attempts_max = 3;
  fill(20);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  auto expected = numbered(20);
  expected.erase(expected.begin() + 7);
  EXPECT_EQ(effects_of(store_, "p0"), expected);
  const auto parked = parked_records();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].message.id, "m7");
  EXPECT_EQ(parked[0].message.body, "body of m7");
  EXPECT_NE(parked[0].reason.find("gave up after 3 attempts"), std::string::npos);
  EXPECT_NE(parked[0].reason.find("no such account"), std::string::npos);
  EXPECT_EQ(counters_.retried, 2u);
  EXPECT_EQ(store_.records()->find("shop", "m7").value()->outcome.kind, Outcome::Kind::parked);
}

// What a server quotes in an error may be a secret of the pipeline.
TEST_F(LaneTest, secrets_are_taken_out_of_reasons_before_they_are_stored_or_sent) {
  options_.redact = [](std::string_view text) {
    std::string made(text);
    for (auto at = made.find("s3cret"); at != std::string::npos; at = made.find("s3cret"))
      made.replace(at, 6, "***");
    return made;
  };
  options_.park_to = "dead";
  options_.retry.attempts_max = 2;
  handler_ = each([](const Delivery& delivery, KeyValueTransaction&) -> Result<Outcome> {
    if (delivery.id == "m0") return rejected("no s3cret");
    if (delivery.id == "m1") return parked("bad s3cret");
    if (delivery.id == "m2") return fail(Remedy::park, "value", "wrong s3cret");
    if (delivery.id == "m3") throw std::runtime_error("threw s3cret");
    return applied("the s3cret result");  // the handler's own
  });
  fill(5);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  const auto detail = [&](const char* id) {
    return store_.records()->find("shop", id).value()->outcome.detail;
  };
  EXPECT_EQ(detail("m0"), "no ***");
  EXPECT_EQ(detail("m4"), "the s3cret result");
  std::vector<std::string> reasons;
  for (const ParkedRecord& record : parked_records()) reasons.push_back(record.reason);
  EXPECT_EQ(reasons, (std::vector<std::string>{"bad ***", "wrong ***",
                                               "gave up after 2 attempts: the handler threw: "
                                               "threw ***"}));
  const auto rows = store_.outbox()->pending("dead", 10).value();
  ASSERT_EQ(rows.size(), 3u);
  for (const OutboxRow& row : rows)
    for (const Header& header : row.message.headers)
      EXPECT_EQ(header.value.value_or("").find("s3cret"), std::string::npos) << header.name;
}

TEST_F(LaneTest, the_messages_before_a_retried_one_do_not_wait_and_those_behind_it_do) {
  int failures = 2;
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "m5" && failures-- > 0) return retry("stock is being counted", 1000);
        return apply_effect(delivery, transaction);
      });
  fill(10);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  ASSERT_TRUE(lane.step());  // spoiled by m5
  ASSERT_TRUE(lane.step());  // m0 .. m4
  EXPECT_EQ(effects_of(store_, "p0"), numbered(5));
  const auto waiting = lane.step();
  EXPECT_GT(waiting->wait_ms, 900);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(5));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_EQ(counters_.retried, 2u);
}

TEST_F(LaneTest, a_blocked_partition_does_not_hold_back_another) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "a0") return retry("later", 60'000);
        return apply_effect(delivery, transaction);
      });
  fill(5, "p0", "a");
  fill(5, "p1", "b");
  Lane lane = make();
  own(lane, "p0");
  own(lane, "p1");
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p1"));
  ASSERT_TRUE(lane.step());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(lane.step());
  EXPECT_EQ(effects_of(store_, "p0"), std::vector<std::string>{});
  EXPECT_EQ(effects_of(store_, "p1"), numbered(5, "b"));
}

TEST_F(LaneTest, outcomes_are_remembered_and_answer_duplicates) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "m0") return applied("receipt 17");
        if (delivery.id == "m1") return rejected("out of stock");
        if (delivery.id == "m2") return no_effect();
        if (delivery.id == "m3") return parked("needs a person");
        return apply_effect(delivery, transaction);
      });
  fill(5);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  Records& records = *store_.records();
  EXPECT_EQ(records.find("shop", "m0").value()->outcome, applied("receipt 17"));
  EXPECT_EQ(records.find("shop", "m1").value()->outcome, rejected("out of stock"));
  EXPECT_FALSE(records.find("shop", "m2").value().has_value());
  EXPECT_EQ(records.find("shop", "m3").value()->outcome, parked("needs a person"));
  EXPECT_EQ(records.find("shop", "m4").value()->outcome, applied());
  EXPECT_EQ(counters_.rejected, 1u);
  EXPECT_EQ(counters_.no_effect, 1u);
  EXPECT_EQ(counters_.parked, 1u);
}

// H5: between the effect and its mark there is no instant at which a crash could fall.
TEST_F(LaneTest, H05_a_crash_after_the_effect_takes_the_effect_back_with_its_mark) {
  bool dies = true;
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        ONCE_TRY(write_effect(delivery, transaction));
        if (delivery.id == "m5" && std::exchange(dies, false)) throw SimulatedDeath{};
        return applied();
      });
  fill(10);
  {
    Lane lane = make();
    own(lane);
    lane.push(source_.batch("p0"));
    EXPECT_THROW((void)lane.step(), SimulatedDeath);
  }
  store_.crash();
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  EXPECT_FALSE(store_.records()->find("shop", "m5").value().has_value());
  Lane restarted = make();
  own(restarted);
  restarted.push(source_.batch("p0"));
  drain(restarted);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

// H9: no number of later ids pushes an early one out of the ledger.
TEST_F(LaneTest, H09_an_id_is_not_forgotten_because_many_others_came) {
  fill(20'000);
  fill(1);  // m0 once more
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 20'001));
  drain(lane);
  EXPECT_EQ(counters_.duplicates, 1u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(20'000));
}

// H15: the sender's retry has another delivery identity and the same intent.
TEST_F(LaneTest, H15_the_intent_and_not_the_delivery_is_what_counts_once) {
  options_.id = IdRule::parse("json:/order").value();
  for (const char* message_id : {"msg-1", "msg-2", "msg-3"})
    source_.add("p0", {.id = message_id,
                       .key = "",
                       .body = R"({"order":"order-100","amount":5})",
                       .headers = {},
                       .timestamp_ms = 1});
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), std::vector<std::string>{"order-100"});
  EXPECT_EQ(counters_.duplicates, 2u);
}

// H30: a ledger that cannot be asked is no reason to go on without it.
TEST_F(LaneTest, H30_while_the_store_fails_nothing_is_handled_and_nothing_is_given_up) {
  fill(5);
  Lane lane = make();
  own(lane);
  store_.set_commit_fault([] { return CommitFault::refused; });
  lane.push(source_.batch("p0"));
  for (int i = 0; i < 20; ++i) {
    const auto step = lane.step();
    ASSERT_TRUE(step);
    EXPECT_TRUE(step->finished.empty());
    clock_.step(step->wait_ms);
  }
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  store_.set_commit_fault({});
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(5));
  EXPECT_TRUE(parked_records().empty());
}

// H7: a handler that says "nothing happened" leaves the id free for the corrected message.
TEST_F(LaneTest, H07_a_message_without_effect_can_come_again) {
  bool in_stock = false;
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (!in_stock) return no_effect();
        return apply_effect(delivery, transaction);
      });
  fill(1);
  fill(1);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 1));
  drain(lane);
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  in_stock = true;
  lane.push(source_.batch("p0", 1, 1));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
}

// H13: the same id with other content is neither applied nor taken for a duplicate.
TEST_F(LaneTest, H13_an_id_used_for_other_content_is_parked_and_the_first_stays) {
  source_.add("p0",
              {.id = "order-1", .key = "", .body = "pay 100", .headers = {}, .timestamp_ms = 1});
  source_.add("p0",
              {.id = "order-1", .key = "", .body = "pay 900", .headers = {}, .timestamp_ms = 2});
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 1));
  lane.push(source_.batch("p0", 1, 1));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), std::vector<std::string>{"order-1"});
  EXPECT_EQ(counters_.mismatched, 1u);
  ASSERT_EQ(parked_records().size(), 1u);
  EXPECT_EQ(parked_records()[0].message.body, "pay 900");
  EXPECT_EQ(store_.records()->find("shop", "order-1").value()->outcome, applied());
}

// H14: a message without an id is not handled under some common id: it is parked with the rule.
TEST_F(LaneTest, H14_a_message_without_id_is_parked_and_names_the_rule) {
  source_.add("p0", {.id = "", .key = "", .body = "x", .headers = {}, .timestamp_ms = 1});
  fill(1);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  ASSERT_EQ(parked_records().size(), 1u);
  EXPECT_NE(parked_records()[0].reason.find("carried"), std::string::npos)
      << parked_records()[0].reason;
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
}

// H8: what is below the horizon is too old, never new.
TEST_F(LaneTest, H08_a_forgotten_id_is_too_old_and_has_no_second_effect) {
  fill(3);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  ASSERT_EQ(store_.forget("shop", 5000, 100).value().rows, 3u);
  fill(1);  // m0 again, born long ago
  lane.push(source_.batch("p0", 3));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(3));
  EXPECT_EQ(counters_.too_old, 1u);
  EXPECT_EQ(parked_records().size(), 1u);
}

TEST_F(LaneTest, an_unknown_commit_that_happened_is_not_repeated) {
  fill(10);
  Lane lane = make();
  own(lane);
  bool first = true;
  store_.set_commit_fault(
      [&] { return std::exchange(first, false) ? CommitFault::lost_after : CommitFault::none; });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_EQ(counters_.rechecked, 1u);
  EXPECT_EQ(counters_.applied, 10u);
}

TEST_F(LaneTest, an_unknown_commit_that_did_not_happen_is_done_again) {
  fill(10);
  Lane lane = make();
  own(lane);
  bool first = true;
  store_.set_commit_fault(
      [&] { return std::exchange(first, false) ? CommitFault::lost_before : CommitFault::none; });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_EQ(counters_.rechecked, 1u);
}

// Each attempt may cost a new connection.
TEST_F(LaneTest, commits_that_never_get_an_answer_are_tried_ever_more_slowly) {
  fill(10);
  Lane lane = make();
  own(lane);
  int lost = 12;
  store_.set_commit_fault(
      [&] { return lost-- > 0 ? CommitFault::lost_before : CommitFault::none; });
  lane.push(source_.batch("p0"));
  const std::int64_t began_ns = clock_.ticks_ns();
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_GT(clock_.ticks_ns() - began_ns, 15'000'000'000);
}

TEST_F(LaneTest, an_unknown_commit_of_lanes_without_positions_is_told_by_the_ledger) {
  fill(10);
  Lane lane({.store = store_,
             .clock = clock_,
             .handler = handler_,
             .options = options_,
             .counters = counters_,
             .positions = false});
  bool first = true;
  store_.set_commit_fault(
      [&] { return std::exchange(first, false) ? CommitFault::lost_after : CommitFault::none; });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_EQ(counters_.duplicates, 10u);
}

TEST_F(LaneTest, a_store_that_is_away_is_waited_for_and_no_message_is_parked) {
  fill(10);
  options_.retry.attempts_max = 2;
  Lane lane = make();
  own(lane);
  int refusals = 50;
  store_.set_commit_fault(
      [&] { return refusals-- > 0 ? CommitFault::refused : CommitFault::none; });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_TRUE(parked_records().empty());
}

// H20: a consumer that lost its partition while it slept can neither write nor rewind.
TEST_F(LaneTest, H20_a_zombie_is_fenced) {
  fill(20);
  Lane zombie = make();
  own(zombie);
  zombie.push(source_.batch("p0", 0, 10));
  Lane owner = make();
  own(owner);
  owner.push(source_.batch("p0", 0, 20));
  drain(owner);
  const auto step = zombie.step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "fenced");
  EXPECT_EQ(step.error().remedy, Remedy::stop);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(20));
  EXPECT_EQ(position().offset, 20);
}

TEST_F(LaneTest, a_commit_in_doubt_that_arrives_late_is_known_as_our_own) {
  fill(10);
  Lane lane = make();
  own(lane);
  bool first = true;
  store_.set_commit_fault(
      [&] { return std::exchange(first, false) ? CommitFault::lost_late : CommitFault::none; });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
  EXPECT_EQ(position().offset, 10);
  EXPECT_EQ(counters_.skipped, 10u);
}

TEST_F(LaneTest, a_zombie_whose_commit_is_in_doubt_stops) {
  fill(10);
  Lane zombie = make();
  own(zombie);
  store_.set_commit_fault([] { return CommitFault::lost_before; });
  zombie.push(source_.batch("p0"));
  ASSERT_TRUE(zombie.step());
  store_.set_commit_fault({});
  Lane owner = make();
  own(owner);
  const auto step = zombie.step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "fenced");
  owner.push(source_.batch("p0"));
  drain(owner);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10));
}

// H25: one duplicate or one bad message in a batch decides about itself and no other.
TEST_F(LaneTest, H25_a_mixed_batch_has_a_verdict_per_message) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "m3") return fail(Remedy::park, "bad", "negative amount");
        return apply_effect(delivery, transaction);
      });
  fill(3);
  fill(6);  // m0 m1 m2 are duplicates, m3 is bad, m4 m5 are new
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), (std::vector<std::string>{"m0", "m1", "m2", "m4", "m5"}));
  ASSERT_EQ(parked_records().size(), 1u);
  EXPECT_EQ(parked_records()[0].reason, "negative amount");
}

TEST_F(LaneTest, batches_shrink_while_messages_fail_and_grow_again) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.offset < 500 && delivery.offset % 10 == 9) return parked("bad");
        return apply_effect(delivery, transaction);
      });
  fill(3000);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0", 0, 1000));
  lane.push(source_.batch("p0", 1000, 1000));
  lane.push(source_.batch("p0", 2000, 1000));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0").size(), 2950u);
  EXPECT_EQ(parked_records().size(), 50u);
  EXPECT_LT(counters_.rolled_back, 60u);  // once per bad message, not once per message
  EXPECT_EQ(counters_.batch_count, 1000u);
}

TEST_F(LaneTest, a_batch_handler_gets_all_new_messages_and_decides_about_each) {
  std::vector<std::size_t> sizes;
  handler_ = batch([&](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
    sizes.push_back(work.size());
    for (Work& one : work) {
      transaction.on_behalf_of(one.message);
      if (one.delivery->id == "m1")
        one.outcome = rejected("closed");
      else
        ONCE_TRY(write_effect(*one.delivery, transaction));
    }
    return {};
  });
  fill(10);
  fill(5);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(sizes, std::vector<std::size_t>{10});
  auto expected = numbered(10);
  expected.erase(expected.begin() + 1);
  EXPECT_EQ(effects_of(store_, "p0"), expected);
  EXPECT_EQ(store_.records()->find("shop", "m1").value()->outcome, rejected("closed"));
}

TEST_F(LaneTest, a_batch_handler_that_fails_for_one_message_is_narrowed_down_to_it) {
  options_.retry.attempts_max = 1;
  handler_ = batch([&](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
    for (const Work& one : work) {
      if (one.delivery->id == "m33") throw std::runtime_error("cannot be");
      ONCE_TRY(write_effect(*one.delivery, transaction));
    }
    return {};
  });
  fill(64);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  auto expected = numbered(64);
  expected.erase(expected.begin() + 33);
  EXPECT_EQ(effects_of(store_, "p0"), expected);
  EXPECT_EQ(parked_records().size(), 1u);
}

TEST_F(LaneTest, a_handler_that_says_stop_ends_the_lane_and_nothing_is_written) {
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "m5") return fail(Remedy::stop, "licence", "expired");
        return apply_effect(delivery, transaction);
      });
  fill(10);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  const auto step = lane.step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "licence");
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  EXPECT_EQ(position().offset, -1);
}

TEST_F(LaneTest, a_disowned_partition_is_dropped_and_the_others_go_on) {
  fill(10, "p0", "a");
  fill(10, "p1", "b");
  Lane lane = make();
  own(lane, "p0");
  own(lane, "p1");
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p1"));
  lane.disown("p0");
  EXPECT_EQ(drain(lane).size(), 1u);
  EXPECT_TRUE(effects_of(store_, "p0").empty());
  EXPECT_EQ(effects_of(store_, "p1"), numbered(10, "b"));
}

TEST_F(LaneTest, what_was_not_settled_is_given_back) {
  fill(10);
  options_.batch_count_max = 4;
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  ASSERT_TRUE(lane.step());
  const auto back = lane.give_back();
  ASSERT_EQ(back.size(), 1u);
  ASSERT_EQ(back[0].deliveries.size(), 6u);
  EXPECT_EQ(back[0].deliveries[0].offset, 4);
  EXPECT_TRUE(lane.idle());
}

// The weaker semantics: what a crash between their two transactions costs, and nothing else does.
struct Weaker : LaneTest, ::testing::WithParamInterface<Semantics> {};

TEST_P(Weaker, without_crashes_each_message_has_one_effect) {
  options_.semantics = GetParam();
  options_.id.reset();
  fill(100);
  Lane lane = make();
  own(lane);
  for (std::size_t from = 0; from < 100; from += 10) lane.push(source_.batch("p0", from, 10));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0").size(), 100u);
  EXPECT_EQ(position().offset, 100);
  EXPECT_EQ(counters_.applied, 100u);
}

TEST_P(Weaker, a_bad_message_is_parked_and_a_lost_answer_of_the_store_is_survived) {
  options_.semantics = GetParam();
  options_.retry.attempts_max = 2;
  handler_ =
      each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "m4") throw std::runtime_error("bad");
        return apply_effect(delivery, transaction);
      });
  fill(10);
  int commits = 0;
  store_.set_commit_fault([&] {
    ++commits;
    return commits == 2 ? CommitFault::refused : CommitFault::none;
  });
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  auto expected = numbered(10);
  expected.erase(expected.begin() + 4);
  EXPECT_EQ(effects_of(store_, "p0"), expected);
  EXPECT_EQ(parked_records().size(), 1u);
  EXPECT_EQ(position().offset, 10);
}

TEST_P(Weaker, an_unknown_commit_errs_on_the_promised_side) {
  options_.semantics = GetParam();
  options_.id.reset();
  fill(10);
  Lane lane = make();
  own(lane);
  int commits = 0;
  const bool most = GetParam() == Semantics::at_most_once;
  store_.set_commit_fault([&] {  // the transaction with the work
    ++commits;
    if (commits != (most ? 2 : 1)) return CommitFault::none;
    return most ? CommitFault::lost_before : CommitFault::lost_after;
  });
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0").size(), most ? 0u : 20u);
}

INSTANTIATE_TEST_SUITE_P(Lane, Weaker,
                         ::testing::Values(Semantics::at_most_once, Semantics::at_least_once),
                         [](const auto& tested) {
                           return tested.param == Semantics::at_most_once ? "at_most_once"
                                                                          : "at_least_once";
                         });

}  // namespace
}  // namespace once
