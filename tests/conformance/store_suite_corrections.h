// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/store_suite_outbox.h"
#include "conformance/store_suite_progress.h"
#include "conformance/store_suite_repairs.h"
#include "model/ledger.h"

// What a person sets, and that nothing goes on with what was there before.

namespace once::testing {

TEST_P(RepairSuite, a_position_is_set_its_owner_is_fenced_and_the_topic_may_be_another) {
  Position position = store().take("shop", "p0", "topic").value();
  {
    auto transaction = begin();
    ASSERT_TRUE(transaction->advance(
        "p0", position, 9, {.settled_ms = 8, .waiting_ms = 7, .drained = true, .witness = {8, 1}}));
    ASSERT_TRUE(transaction->commit());
  }
  ASSERT_TRUE(store().take("shop", "p1", "topic"));
  ASSERT_TRUE(repairs().correct("shop", SetPosition{"p0", 3}, "the topic was made anew"));
  {
    auto transaction = begin();
    const Status moved = transaction->advance("p0", {9, position.fence}, 10);
    EXPECT_TRUE(!moved || !transaction->commit());
  }
  reopen();
  const PartitionRecord known = partition_of(store(), "p0");
  EXPECT_EQ(known.position.offset, 3);
  EXPECT_GT(known.position.fence, position.fence);
  EXPECT_EQ(known.position.witness, Witness{});
  EXPECT_EQ(known.source_identity, "");
  EXPECT_EQ(known.settled_ms, -1);
  EXPECT_EQ(known.waiting_ms, -1);
  EXPECT_EQ(known.drained_ms, -1);
  EXPECT_EQ(partition_of(store(), "p1").source_identity, "topic");
  const Position taken = store().take("shop", "p0", "another topic").value();
  EXPECT_EQ(taken.offset, 3);
  ASSERT_TRUE(repairs().correct("shop", SetPosition{"p0", -1}, "from the first message"));
  EXPECT_EQ(store().position("shop", "p0").value().offset, -1);
  EXPECT_GT(store().position("shop", "p0").value().fence, taken.fence);
  ASSERT_TRUE(repairs().correct("shop", SetPosition{"new", 12}, "a copy begins here"));
  EXPECT_EQ(store().position("shop", "new").value().offset, 12);

  std::vector<OperationRecord> lines = records().operations("shop", 0, 100).value();
  std::erase_if(lines, [](const OperationRecord& line) { return line.action == "take"; });
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].action, "set position");
  EXPECT_EQ(lines[0].subject, "p0 to 3");
  EXPECT_EQ(lines[0].reason, "the topic was made anew");
}

TEST_P(RepairSuite, a_horizon_that_is_set_back_is_the_horizon_of_everything) {
  ASSERT_EQ(kind_of(entry("old", 0, 0, 100)), Kind::fresh);
  ASSERT_EQ(kind_of(entry("young", 1, 0, 5000)), Kind::fresh);
  EXPECT_EQ(forget_all(4000), 1u);
  EXPECT_EQ(kind_of(entry("between", 2, 0, 3000)), Kind::too_old);
  ASSERT_TRUE(repairs().correct("shop", SetHorizon{2000}, "a message came from 2099"));
  EXPECT_EQ(records().horizon_ms("shop").value(), 2000);
  EXPECT_EQ(kind_of(entry("between", 2, 0, 3000)), Kind::fresh);
  EXPECT_EQ(kind_of(entry("old", 0, 0, 100)), Kind::too_old);
  // Forgetting goes on from the horizon that was set, and not from the one that was there.
  EXPECT_EQ(forget_all(0), 0u);
  ASSERT_TRUE(repairs().correct("shop", ReleaseHorizon{}, "its messages are replayed"));
  EXPECT_EQ(forget_all(2500), 0u);
  EXPECT_EQ(records().horizon_ms("shop").value(), 2500);
  EXPECT_EQ(kind_of(entry("between", 3, 0, 3000)), Kind::duplicate);
  reopen();
  EXPECT_EQ(records().horizon_ms("shop").value(), 2500);
  EXPECT_EQ(forget_all(3500), 1u);  // it was swept that far before, but not since
  EXPECT_EQ(kind_of(entry("between", 3, 0, 3000)), Kind::too_old);
  EXPECT_EQ(kind_of(entry("young", 1, 0, 5000)), Kind::duplicate);
  EXPECT_EQ(effects(), (Strings{"old", "young", "between"}));
  std::vector<OperationRecord> lines = records().operations("shop", 0, 100).value();
  std::erase_if(lines, [](const OperationRecord& line) { return line.action == "forget"; });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].action, "set horizon");
  EXPECT_EQ(lines[0].subject, "2000");
  EXPECT_EQ(lines[0].reason, "a message came from 2099");
  EXPECT_EQ(lines[1].action, "release horizon");
  EXPECT_EQ(lines[1].subject, "shop");
  EXPECT_EQ(lines[1].reason, "its messages are replayed");
}

// Pipelines forget all the time: what a person has set must not last for half a second only.
TEST_P(RepairSuite, a_horizon_that_is_set_stays_until_it_is_released) {
  ASSERT_EQ(kind_of(entry("old", 0, 0, 1000)), Kind::fresh);
  ASSERT_EQ(kind_of(entry("young", 1, 0, 3000)), Kind::fresh);
  forget_all(500);
  EXPECT_FALSE(records().describe("shop").value().horizon_held);
  ASSERT_TRUE(repairs().correct("shop", SetHorizon{2000}, "a message has a wrong birth"));
  EXPECT_TRUE(records().describe("shop").value().horizon_held);
  EXPECT_EQ(forget_all(4000), 1u) << "what is below it is forgotten, and nothing else";
  EXPECT_EQ(records().horizon_ms("shop").value(), 2000);
  reopen();
  const std::unique_ptr<Store> opened = under_test_->open_another();
  Store& other = opened ? *opened : store();
  for (int i = 0; i < 5; ++i) {
    const auto forgotten = other.forget("shop", 5000 + i, 10);
    ASSERT_TRUE(forgotten) << forgotten.error().text;
    EXPECT_EQ(forgotten->rows, 0u);
    EXPECT_FALSE(forgotten->more);
  }
  EXPECT_EQ(forget_all(6000), 0u);
  EXPECT_EQ(kind_of(entry("between", 2, 0, 2500)), Kind::fresh);
  EXPECT_EQ(kind_of(entry("young", 3, 0, 3000)), Kind::duplicate);
  ASSERT_TRUE(other.repairs()->correct("shop", SetHorizon{0}, "replay it all"));
  EXPECT_EQ(forget_all(6000), 0u);
  EXPECT_EQ(records().horizon_ms("shop").value(), 0);
  ASSERT_TRUE(other.repairs()->correct("shop", ReleaseHorizon{}, "done"));
  EXPECT_FALSE(records().describe("shop").value().horizon_held);
  EXPECT_EQ(forget_all(2600), 1u);
  EXPECT_EQ(records().horizon_ms("shop").value(), 2600);
  EXPECT_EQ(kind_of(entry("between", 4, 0, 2500)), Kind::too_old);
  EXPECT_EQ(kind_of(entry("young", 5, 0, 3000)), Kind::duplicate);
  // A scope that has no horizon is held, and released, too.
  ASSERT_TRUE(repairs().correct("new", ReleaseHorizon{}, "nothing to release"));
  ASSERT_TRUE(repairs().correct("new", SetHorizon{0}, "forget nothing"));
  ASSERT_TRUE(store().forget("new", 4000, 10));
  EXPECT_EQ(records().horizon_ms("new").value(), 0);
  ASSERT_TRUE(repairs().correct("new", DropScope{}, "made anew"));
  EXPECT_FALSE(records().describe("new").value().horizon_held);
  ASSERT_TRUE(store().forget("new", 4000, 10));
  EXPECT_EQ(records().horizon_ms("new").value(), 4000);
}

TEST_P(RepairSuite, a_sweep_that_is_under_way_stops_at_a_horizon_that_is_set_back) {
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("id " + std::to_string(i));
  std::vector<Entry> batch;
  for (const std::string& name : names) batch.push_back(entry(name, 0, 0, 1000));
  ASSERT_TRUE(handle(batch));
  const auto first = store().forget("shop", 2000, 10).value();
  ASSERT_TRUE(first.more);
  ASSERT_TRUE(repairs().correct("shop", SetHorizon{500}, "set too far"));
  EXPECT_EQ(forget_all(500), 0u);
  EXPECT_EQ(forget_all(2000), 0u);
  std::size_t left = 0;
  for (const std::string& name : names) left += records().find("shop", name).value() ? 1u : 0u;
  EXPECT_EQ(left, names.size() - first.rows);
  ASSERT_TRUE(repairs().correct("shop", ReleaseHorizon{}, "go on"));
  EXPECT_EQ(forget_all(2000), left);
}

// Each process remembers how far it has swept; what another one corrects counts all the same.
TEST_P(RepairSuite, a_process_notices_what_another_one_corrects) {
  const std::unique_ptr<Store> opened = under_test_->open_another();
  Store& other = opened ? *opened : store();
  EXPECT_EQ(other.traits().identity, store().traits().identity);
  ASSERT_EQ(kind_of(entry("old", 0, 0, 100)), Kind::fresh);
  EXPECT_EQ(forget_all(4000), 1u);
  ASSERT_TRUE(other.repairs()->correct("shop", SetHorizon{2000}, "set too far"));
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("id " + std::to_string(i));
  std::vector<Entry> batch;
  for (const std::string& name : names) batch.push_back(entry(name, 1, 0, 3000));
  const auto verdicts = handle(batch).value();
  for (const Verdict& verdict : verdicts) EXPECT_EQ(verdict.kind, Kind::fresh);
  ASSERT_TRUE(other.repairs()->correct("shop", ReleaseHorizon{}, "go on"));
  EXPECT_EQ(forget_all(2500), 0u);
  EXPECT_EQ(other.records()->horizon_ms("shop").value(), 2500);
  Forgotten first;  // until some are gone: it was swept that far before, and has to be again
  do {
    first = store().forget("shop", 3500, 10).value();
  } while (first.rows == 0 && first.more);
  EXPECT_GT(first.rows, 0u);
  EXPECT_TRUE(first.more);
  ASSERT_TRUE(other.repairs()->correct("shop", SetHorizon{3000}, "set too far again"));
  EXPECT_EQ(forget_all(3001), 0u);
  ASSERT_TRUE(other.repairs()->correct("shop", ReleaseHorizon{}, "go on"));
  EXPECT_EQ(forget_all(3000), 0u);
  EXPECT_EQ(forget_all(3001), names.size() - first.rows);

  const Position position = store().take("shop", "p0", "topic").value();
  ASSERT_TRUE(other.repairs()->correct("shop", SetPosition{"p0", 7}, "another topic"));
  auto transaction = begin();
  const Status moved = transaction->advance("p0", position, 10);
  EXPECT_TRUE(!moved || !transaction->commit());
  transaction.reset();
  EXPECT_EQ(store().take("shop", "p0", "another topic").value().offset, 7);
}

TEST_P(RepairSuite, a_horizon_that_is_set_is_that_of_claims) {
  const ClaimTerms terms{.owner = "me", .lease_ms = 60'000};
  const auto kind = [&](std::string_view id) {
    const ClaimRequest request{.id = id, .born_ms = 3000};
    return claims().claim("shop", terms, std::span(&request, 1)).value().at(0).kind;
  };
  forget_all(4000);
  EXPECT_EQ(kind("a"), ClaimAnswer::Kind::too_old);
  ASSERT_TRUE(repairs().correct("shop", SetHorizon{2000}, "set too far"));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(kind("claim " + std::to_string(i)), ClaimAnswer::Kind::granted);
  ASSERT_TRUE(repairs().correct("shop", SetHorizon{5000}, "forward"));
  EXPECT_EQ(kind("b"), ClaimAnswer::Kind::too_old);
}

TEST_P(RepairSuite, a_destination_that_is_restarted_counts_from_zero) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 5);
  sender.enqueue("other", 10, 2);
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  const std::uint64_t other = store().take(relay_scope, "other").value().fence;
  const auto numbers = sender.numbers("next");
  ASSERT_TRUE(outbox().assign("next", fence, std::span(numbers).first(4),
                              std::vector<std::uint32_t>{0, 1, 0, 1}));
  sender.assign("other", other, 0);
  ASSERT_TRUE(outbox().sent("next", fence, std::span(numbers).first(2)));
  ASSERT_TRUE(repairs().correct(relay_scope, RestartDestination{"next"}, "it was made anew"));
  reopen();
  Sender after(*under_test_);
  EXPECT_EQ(after.pending("next"), (Strings{"m2", "m3", "m4"}));
  for (const auto& [number, route] : after.routes("next")) EXPECT_FALSE(route);
  for (const auto& [number, route] : after.routes("other")) EXPECT_TRUE(route);
  EXPECT_EQ(outbox().sent("next", fence, std::span(numbers).last(1)).error().tag, "fenced");
  const Position restarted = store().position(relay_scope, "next").value();
  EXPECT_EQ(restarted.offset, 0);
  EXPECT_GT(restarted.fence, fence);
  const Position taken = store().take(relay_scope, "next").value();
  after.assign("next", taken.fence, 0);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(outbox().pending("next", 10).value()[i].route, (Route{0, i}));
  ASSERT_TRUE(repairs().correct(relay_scope, RestartDestination{"next"}, "once more"));
  EXPECT_EQ(store().position(relay_scope, "next").value().offset, 1);
  ASSERT_TRUE(repairs().correct(relay_scope, RestartDestination{"never used"}, "why not"));
  EXPECT_EQ(store().position(relay_scope, "never used").value().offset, 0);
  std::vector<OperationRecord> lines = records().operations(relay_scope, 0, 100).value();
  std::erase_if(lines, [](const OperationRecord& line) { return line.action == "take"; });
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].action, "restart destination");
  EXPECT_EQ(lines[0].subject, "next");
  EXPECT_EQ(lines[0].reason, "it was made anew");
}

// What waits for a destination that will never come back.
TEST_P(RepairSuite, what_is_pending_is_given_up_and_the_destination_begins_anew) {
  Sender sender(*under_test_);
  sender.enqueue("next", 0, 5);
  sender.enqueue("other", 10, 2);
  const std::uint64_t fence = store().take(relay_scope, "next").value().fence;
  const auto numbers = sender.numbers("next");
  ASSERT_TRUE(outbox().assign("next", fence, std::span(numbers).first(3),
                              std::vector<std::uint32_t>{0, 1, 0}));
  ASSERT_TRUE(outbox().sent("next", fence, std::span(numbers).first(1)));
  ASSERT_TRUE(repairs().correct(relay_scope, DropPending{"next"}, "it was switched off"));
  reopen();
  Sender after(*under_test_);
  EXPECT_EQ(after.pending("next"), Strings{});
  EXPECT_EQ(after.pending("other"), (Strings{"m10", "m11"}));
  EXPECT_EQ(outbox().destinations().value(), Strings{"other"});
  // A relay that was sending does not go on with sequences that are given again.
  EXPECT_EQ(outbox().sent("next", fence, std::span(numbers).last(1)).error().tag, "fenced");
  EXPECT_EQ(store().position(relay_scope, "next").value().offset, 0);
  const Position taken = store().take(relay_scope, "next").value();
  after.enqueue("next", 20, 2);
  const auto fresh = after.numbers("next");
  ASSERT_EQ(fresh.size(), 2u);
  EXPECT_GT(fresh.front(), numbers.back());
  after.assign("next", taken.fence, 1);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(outbox().pending("next", 10).value()[i].route, (Route{1, i}));
  std::vector<OperationRecord> lines = records().operations(relay_scope, 0, 100).value();
  std::erase_if(lines, [](const OperationRecord& line) { return line.action == "take"; });
  // Each id that is given up has a line, so that it can be found by it.
  Strings dropped;
  for (const OperationRecord& line : lines)
    if (line.action == "drop") {
      dropped.push_back(line.subject);
      EXPECT_EQ(line.reason, "it was switched off (pending for \"next\")");
    }
  EXPECT_EQ(dropped, (Strings{"m1", "m2", "m3", "m4"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines.back().action, "drop pending");
  EXPECT_EQ(lines.back().subject, "next");
  EXPECT_EQ(lines.back().reason, "it was switched off");
  ASSERT_TRUE(repairs().correct(relay_scope, DropPending{"never used"}, "why not"));
}

TEST_P(RepairSuite, of_very_many_that_are_given_up_the_log_has_the_oldest_ids) {
  Sender sender(*under_test_);
  const auto count = static_cast<int>(dropped_ids_max) + 3;
  sender.enqueue("next", 0, count);
  ASSERT_TRUE(repairs().correct(relay_scope, DropPending{"next"}, "it was switched off"));
  Strings expected, dropped;
  for (int i = 0; i < dropped_ids_max; ++i) expected.push_back("m" + std::to_string(i));
  const auto lines = records().operations(relay_scope, 0, 2000).value();
  for (const OperationRecord& line : lines)
    if (line.action == "drop") dropped.push_back(line.subject);
  EXPECT_EQ(dropped, expected);
}

TEST_P(RepairSuite, nonsense_and_corrections_without_a_reason_change_nothing) {
  const Position position = store().take("shop", "p0", "topic").value();
  forget_all(4000);
  const auto tag = [&](const Correction& correction, std::string_view reason = "why") {
    const Status done = repairs().correct("shop", correction, reason);
    return done ? std::string("ok") : done.error().tag;
  };
  EXPECT_EQ(tag(SetPosition{"p0", 3}, " "), "config");
  EXPECT_EQ(tag(SetPosition{"p0", -2}), "config");
  EXPECT_EQ(tag(SetPosition{"", 3}), "config");
  EXPECT_EQ(tag(SetHorizon{-1}), "config");
  EXPECT_EQ(tag(SetHorizon{1}, ""), "config");
  EXPECT_EQ(tag(RestartDestination{std::string(256, 'x')}), "config");
  EXPECT_EQ(tag(DropPending{std::string(256, 'x')}), "config");
  EXPECT_EQ(tag(DropPending{""}), "config");
  EXPECT_FALSE(repairs().correct("", SetHorizon{1}, "why"));
  EXPECT_EQ(partition_of(store(), "p0").position, position);
  EXPECT_EQ(partition_of(store(), "p0").source_identity, "topic");
  EXPECT_EQ(records().horizon_ms("shop").value(), 4000);
}

TEST_P(RepairSuite, a_scope_that_is_dropped_leaves_nothing_but_a_line_of_the_store) {
  park_the_odd_ones();
  const Position owner = store().take("shop", "p0", "topic").value();
  ASSERT_TRUE(store().take("other", "p0", "topic"));
  ASSERT_EQ(kind_of(entry("kept"), "other"), Kind::fresh);
  const ClaimRequest request{.id = "claim"};
  ASSERT_TRUE(claims().claim("shop", {.owner = "me", .lease_ms = 60'000}, std::span(&request, 1)));
  forget_all(100);
  EXPECT_EQ(repairs().correct("shop", DropScope{}, "").error().tag, "config");
  ASSERT_TRUE(repairs().correct("shop", DropScope{}, "it is not used any more"));
  {
    auto transaction = begin();
    const Status moved = transaction->advance("p0", owner, 10);
    EXPECT_TRUE(!moved || !transaction->commit()) << "its owner must be fenced";
  }
  reopen();
  const std::vector<std::string> scopes = records().scopes().value();
  EXPECT_EQ(std::count(scopes.begin(), scopes.end(), "shop"), 0);
  EXPECT_EQ(std::count(scopes.begin(), scopes.end(), "other"), 1);
  EXPECT_TRUE(records().ledger("shop", "", 100).value().empty());
  EXPECT_TRUE(records().parked("shop", 0, 100).value().empty());
  EXPECT_TRUE(records().operations("shop", 0, 100).value().empty());
  EXPECT_TRUE(claims().claims("shop", std::nullopt, "", 100).value().empty());
  const ScopeRecord described = records().describe("shop").value();
  EXPECT_EQ(described.horizon_ms, 0);
  EXPECT_TRUE(described.partitions.empty());
  EXPECT_EQ(kind_of(entry("kept"), "other"), Kind::duplicate);
  EXPECT_EQ(kind_of(entry_of(order(2))), Kind::fresh);
  const auto lines = records().operations(store_scope, 0, 100).value();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().action, "drop scope");
  EXPECT_EQ(lines.back().subject, "shop");
  EXPECT_EQ(lines.back().reason, "it is not used any more");
  // A second time there is nothing to do, which does no harm.
  EXPECT_TRUE(repairs().correct("never used", DropScope{}, "why not"));
}

// All lines of the log are numbered and dated, and the newest are those that are kept.
TEST_P(RepairSuite, the_operation_log_of_a_scope_has_a_limit) {
  constexpr int count = 10'300;
  constexpr int batch = 2'060;
  for (int first = 0; first < count; first += batch) {
    auto transaction = begin();
    for (int i = first; i < first + batch; ++i) {
      const std::string id = "m" + std::to_string(i);
      ASSERT_TRUE(transaction->settle(delivery(id, i), parked("no")));
    }
    ASSERT_TRUE(transaction->commit());
  }
  ASSERT_TRUE(store().take("shop", "p0"));
  std::vector<OperationRecord> lines;
  while (true) {
    const auto page =
        records().operations("shop", lines.empty() ? 0 : lines.back().number, 5'000).value();
    lines.insert(lines.end(), page.begin(), page.end());
    if (page.size() < 5'000) break;
  }
  EXPECT_GE(lines.size(), 10'000u);
  EXPECT_LE(lines.size(), 10'200u);
  EXPECT_EQ(lines.back().action, "take");
  EXPECT_EQ(lines[lines.size() - 2].subject, "m" + std::to_string(count - 1));
}

TEST_P(RepairSuite, the_log_keeps_the_record_of_an_id_that_was_freed) {
  park_the_odd_ones();
  const LedgerRecord was = records().find("shop", "m1").value().value();
  ASSERT_TRUE(repairs().force("shop", "m1", "send it again"));
  const auto line = done_by_hand().at(0);
  EXPECT_EQ(line.action, "force");
  EXPECT_EQ(line.subject, "m1");
  EXPECT_EQ(line.reason, "send it again (was parked: " + was.outcome.detail + "; " + was.partition +
                             " offset 1, born " + std::to_string(was.born_ms) + " ms, recorded " +
                             std::to_string(was.recorded_ms) + " ms)");
}

}  // namespace once::testing
