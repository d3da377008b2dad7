// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

#include "conformance/store_fixture.h"

namespace once::testing {

using Answered = ClaimAnswer::Kind;

constexpr std::int64_t lease_ms = 60'000;

// One program that claims.
struct Claimant {
  ClaimStore& store;
  std::string owner = "A";
  AfterLoss after_loss = AfterLoss::doubt;

  Result<std::vector<ClaimAnswer>> try_claim(std::span<const ClaimRequest> requests,
                                             std::string_view scope = "bank") const {
    return store.claim(scope, {owner, lease_ms, after_loss}, requests);
  }
  ClaimAnswer claim(std::string_view id, int content = 0, std::string_view scope = "bank") const {
    const ClaimRequest request{.id = id, .fingerprint = print(content)};
    auto answers = try_claim(std::span(&request, 1), scope);
    EXPECT_TRUE(answers) << answers.error().text;
    return answers->at(0);
  }
  bool change(const ClaimRecord& record, ClaimState to, std::optional<std::string_view> result = {},
              std::string_view reason = {}, std::span<const StepRecord> steps = {}) const {
    const ClaimChange change{record.id, record.fence, to, result, reason, steps};
    return store.change("bank", std::span(&change, 1)).value().at(0);
  }
  bool renew(const ClaimRecord& record) const {
    const HeldClaim held{record.id, record.fence};
    return store.renew("bank", lease_ms, std::span(&held, 1)).value().at(0);
  }
  ClaimRecord look(std::string_view id) const {
    auto found = store.claims("bank", std::nullopt, id, 1).value();
    if (found.empty() || found[0].id != id) return {};
    return found[0];
  }
};

TEST_P(StoreSuite, a_claim_is_granted_once_and_its_result_is_remembered) {
  const Claimant a{claims()};
  const std::int64_t start_ms = records().describe("bank").value().now_ms;
  const ClaimAnswer granted = a.claim("pay 1");
  ASSERT_EQ(granted.kind, Answered::granted);
  EXPECT_EQ(granted.record.attempts, 1u);
  EXPECT_GE(granted.record.fence, static_cast<std::uint64_t>(start_ms));
  EXPECT_EQ(granted.record.state, ClaimState::running);
  EXPECT_EQ(a.claim("pay 1").kind, Answered::busy);
  ASSERT_TRUE(a.change(granted.record, ClaimState::done, "receipt 9"));
  reopen();
  const ClaimAnswer later = Claimant{claims(), "B"}.claim("pay 1");
  EXPECT_EQ(later.kind, Answered::settled);
  EXPECT_EQ(later.record.state, ClaimState::done);
  EXPECT_EQ(later.record.result, "receipt 9");
}

TEST_P(StoreSuite, an_empty_result_is_not_the_same_as_none) {
  const Claimant a{claims()};
  ASSERT_TRUE(a.change(a.claim("empty").record, ClaimState::done, ""));
  ASSERT_TRUE(a.change(a.claim("none").record, ClaimState::done));
  EXPECT_EQ(a.claim("empty").record.result, "");
  EXPECT_EQ(a.claim("none").record.result, std::nullopt);
}

TEST_P(StoreSuite, H07_a_refusal_is_remembered_as_a_refusal) {
  const Claimant a{claims()};
  ASSERT_TRUE(a.change(a.claim("pay 1").record, ClaimState::rejected, {}, "no such account"));
  const ClaimAnswer later = a.claim("pay 1");
  EXPECT_EQ(later.kind, Answered::settled);
  EXPECT_EQ(later.record.state, ClaimState::rejected);
  EXPECT_EQ(later.record.reason, "no such account");
}

TEST_P(StoreSuite, H06_what_was_released_goes_on_behind_its_finished_steps) {
  const Claimant a{claims()};
  const ClaimRecord first = a.claim("pay 1").record;
  const std::vector<StepRecord> steps{{"charge", "ok 7"}, {std::string("re\0ceipt", 8), ""}};
  ASSERT_TRUE(a.change(first, ClaimState::running, {}, {}, steps));
  EXPECT_EQ(a.claim("pay 1").kind, Answered::busy);  // it still runs
  ASSERT_TRUE(a.change(first, ClaimState::retryable, {}, "the mail server is away", steps));
  const ClaimAnswer again = Claimant{claims(), "B"}.claim("pay 1");
  ASSERT_EQ(again.kind, Answered::granted);
  EXPECT_EQ(again.record.steps, steps);
  EXPECT_EQ(again.record.attempts, 2u);
  EXPECT_GT(again.record.fence, first.fence);
}

TEST_P(StoreSuite, H02_a_lost_owner_is_never_taken_for_a_finished_one) {
  for (const AfterLoss after : {AfterLoss::retry, AfterLoss::doubt, AfterLoss::give_up}) {
    const std::string id = "pay " + std::to_string(static_cast<int>(after));
    const Claimant a{claims(), "A", after};
    const ClaimRecord lost = a.claim(id).record;
    under_test_->jump_clock(lease_ms - 1000);
    EXPECT_EQ(a.claim(id).kind, Answered::busy);
    under_test_->jump_clock(2000);
    const ClaimRecord seen = a.look(id);
    const ClaimAnswer next = Claimant{claims(), "B", after}.claim(id);
    switch (after) {
      case AfterLoss::retry:
        EXPECT_EQ(seen.state, ClaimState::retryable);
        EXPECT_EQ(next.kind, Answered::granted);
        EXPECT_EQ(next.record.attempts, 2u);
        break;
      case AfterLoss::doubt:
        EXPECT_EQ(seen.state, ClaimState::in_doubt);
        EXPECT_EQ(next.kind, Answered::doubtful);
        EXPECT_EQ(next.record.attempts, 1u);
        EXPECT_NE(next.record.reason.find("A"), std::string::npos) << next.record.reason;
        break;
      case AfterLoss::give_up:
        EXPECT_EQ(seen.state, ClaimState::rejected);
        EXPECT_EQ(next.kind, Answered::settled);
        EXPECT_EQ(next.record.state, ClaimState::rejected);
        break;
    }
    EXPECT_EQ(next.record.fence > lost.fence, after != AfterLoss::give_up);
  }
}

TEST_P(StoreSuite, H03_H04_who_lost_its_lease_can_neither_renew_nor_settle) {
  const Claimant a{claims(), "A", AfterLoss::retry};
  const Claimant b{claims(), "B", AfterLoss::retry};
  const ClaimRecord stale = a.claim("pay 1").record;
  under_test_->jump_clock(lease_ms + 1);
  const ClaimRecord taken = b.claim("pay 1").record;
  EXPECT_FALSE(a.renew(stale));
  for (const ClaimState to : {ClaimState::done, ClaimState::rejected, ClaimState::retryable,
                              ClaimState::in_doubt, ClaimState::running})
    EXPECT_FALSE(a.change(stale, to, "stale")) << name_of(to);
  EXPECT_EQ(a.look("pay 1").owner, "B");
  ASSERT_TRUE(b.change(taken, ClaimState::done, "by B"));
  EXPECT_FALSE(a.change(stale, ClaimState::retryable));
  EXPECT_EQ(a.claim("pay 1").record.result, "by B");
}

TEST_P(StoreSuite, a_late_owner_that_nobody_replaced_may_still_settle) {
  const Claimant a{claims()};
  const ClaimRecord late = a.claim("pay 1").record;
  under_test_->jump_clock(lease_ms + 1);
  EXPECT_EQ(a.look("pay 1").state, ClaimState::in_doubt);
  EXPECT_TRUE(a.change(late, ClaimState::done, "in time after all"));
  EXPECT_EQ(a.claim("pay 1").kind, Answered::settled);
}

TEST_P(StoreSuite, a_renewed_lease_lasts_and_a_clock_that_goes_back_does_not_shorten_it) {
  const Claimant a{claims()};
  const ClaimRecord held = a.claim("pay 1").record;
  for (int i = 0; i < 5; ++i) {
    under_test_->jump_clock(lease_ms - 1000);
    ASSERT_TRUE(a.renew(held));
    EXPECT_EQ(a.claim("pay 1").kind, Answered::busy);
  }
  under_test_->jump_clock(-10 * lease_ms);
  EXPECT_EQ(a.claim("pay 1").kind, Answered::busy);
  EXPECT_TRUE(a.change(held, ClaimState::done));
}

TEST_P(StoreSuite, a_claim_in_doubt_has_one_resolver_at_a_time) {
  const Claimant a{claims()};
  ASSERT_TRUE(a.change(a.claim("pay 1").record, ClaimState::in_doubt, {}, "no answer"));
  const ClaimAnswer resolver = a.claim("pay 1");
  ASSERT_EQ(resolver.kind, Answered::doubtful);
  EXPECT_EQ(resolver.record.reason, "no answer");
  EXPECT_EQ(Claimant({claims(), "B"}).claim("pay 1").kind, Answered::busy);
  ASSERT_TRUE(a.change(resolver.record, ClaimState::running));  // it did not happen: run it
  EXPECT_EQ(Claimant({claims(), "B"}).claim("pay 1").kind, Answered::busy);
  ASSERT_TRUE(a.change(resolver.record, ClaimState::done, "second try"));
  EXPECT_EQ(a.claim("pay 1").record.result, "second try");
}

TEST_P(StoreSuite, a_resolver_that_is_lost_leaves_the_claim_in_doubt) {
  const Claimant a{claims(), "A", AfterLoss::retry};
  ASSERT_TRUE(a.change(a.claim("pay 1").record, ClaimState::in_doubt));
  ASSERT_EQ(a.claim("pay 1").kind, Answered::doubtful);
  under_test_->jump_clock(lease_ms + 1);
  EXPECT_EQ(a.claim("pay 1").kind, Answered::doubtful);
}

TEST_P(StoreSuite, H13_an_id_for_something_else_is_a_mismatch_in_every_state) {
  const Claimant a{claims()};
  const ClaimRecord held = a.claim("pay 1", 100).record;
  EXPECT_EQ(a.claim("pay 1", 999).kind, Answered::mismatch);
  ASSERT_TRUE(a.change(held, ClaimState::retryable));
  EXPECT_EQ(a.claim("pay 1", 999).kind, Answered::mismatch);
  const ClaimRecord again = a.claim("pay 1", 100).record;
  ASSERT_TRUE(a.change(again, ClaimState::done));
  const ClaimAnswer other = a.claim("pay 1", 999);
  EXPECT_EQ(other.kind, Answered::mismatch);
  EXPECT_EQ(other.record.fingerprint, print(100));
  EXPECT_EQ(a.claim("pay 1", 100).kind, Answered::settled);
}

TEST_P(StoreSuite, H25_a_span_has_an_answer_for_each_request) {
  const Claimant a{claims()};
  ASSERT_TRUE(a.change(a.claim("old").record, ClaimState::done, "was"));
  const std::vector<ClaimRequest> requests{
      {.id = "new"}, {.id = "old"}, {.id = "new"}, {.id = "other"}, {.id = "other"}};
  const auto answers = a.try_claim(requests).value();
  std::vector<Answered> kinds;
  for (const ClaimAnswer& answer : answers) kinds.push_back(answer.kind);
  EXPECT_EQ(kinds, (std::vector{Answered::granted, Answered::settled, Answered::busy,
                                Answered::granted, Answered::busy}));
  EXPECT_EQ(answers[1].record.result, "was");
}

TEST_P(StoreSuite, H31_a_scope_knows_nothing_of_another) {
  const Claimant a{claims()};
  ASSERT_TRUE(a.change(a.claim("pay 1").record, ClaimState::done, "secret"));
  const ClaimAnswer other = a.claim("pay 1", 0, "bank of another tenant");
  EXPECT_EQ(other.kind, Answered::granted);
  EXPECT_EQ(other.record.result, std::nullopt);
}

TEST_P(StoreSuite, H14_bad_ids_and_terms_are_refused) {
  const std::string long_id(1025, 'x');
  for (const std::string_view id : {std::string_view(), std::string_view(long_id)}) {
    const ClaimRequest request{.id = id};
    const auto answers = Claimant{claims()}.try_claim(std::span(&request, 1));
    ASSERT_FALSE(answers);
    EXPECT_EQ(answers.error().remedy, Remedy::park);
  }
  const ClaimRequest request{.id = "a"};
  EXPECT_FALSE(claims().claim("bank", {"", lease_ms, {}}, std::span(&request, 1)));
  EXPECT_FALSE(claims().claim("bank", {"A", 0, {}}, std::span(&request, 1)));
  EXPECT_FALSE(claims().claim("", {"A", lease_ms, {}}, std::span(&request, 1)));
}

TEST_P(StoreSuite, H08_a_forgotten_claim_is_too_old_and_an_open_one_is_not_forgotten) {
  const Claimant a{claims()};
  const auto claim_born = [&](std::string_view id, std::int64_t born_ms) {
    const ClaimRequest request{.id = id, .born_ms = born_ms};
    return a.try_claim(std::span(&request, 1)).value().at(0);
  };
  ASSERT_TRUE(a.change(claim_born("done", birth_ms).record, ClaimState::done));
  ASSERT_TRUE(a.change(claim_born("young", birth_ms + day_ms).record, ClaimState::done));
  ASSERT_TRUE(a.change(claim_born("doubt", birth_ms).record, ClaimState::in_doubt));
  const ClaimRecord running = claim_born("running", birth_ms).record;
  Forgotten forgotten;
  std::size_t rows = 0;
  do {
    forgotten = store().forget("bank", birth_ms + 1, 10).value();
    rows += forgotten.rows;
  } while (forgotten.more);
  EXPECT_EQ(rows, 1u);
  const ClaimAnswer gone = claim_born("done", birth_ms);
  EXPECT_EQ(gone.kind, Answered::too_old);
  EXPECT_EQ(gone.horizon_ms, birth_ms + 1);
  EXPECT_EQ(claim_born("young", birth_ms + day_ms).kind, Answered::settled);
  EXPECT_EQ(claim_born("doubt", birth_ms).kind, Answered::doubtful);
  EXPECT_TRUE(a.change(running, ClaimState::done));
}

// Whatever the bytes of the times are that are compared.
TEST_P(StoreSuite, H08_a_claim_is_held_until_its_lease_ends_at_any_time_of_day) {
  const Claimant a{claims()};
  for (int i = 0; i < 100; ++i) {
    const std::string id = "pay " + std::to_string(i);
    under_test_->jump_clock(1'234'567 + 89 * i);
    const ClaimRequest request{.id = id};
    const auto claim = [&](std::string_view owner) {
      const ClaimTerms terms{.owner = owner, .lease_ms = 600'000};
      return claims().claim("bank", terms, std::span(&request, 1)).value().at(0);
    };
    const ClaimAnswer first = claim("one");
    ASSERT_EQ(first.kind, Answered::granted);
    EXPECT_EQ(claim("two").kind, Answered::busy) << i;
    under_test_->jump_clock(450'000);
    const HeldClaim held{id, first.record.fence};
    ASSERT_TRUE(claims().renew("bank", 600'000, std::span(&held, 1)).value().at(0));
    under_test_->jump_clock(450'000);
    EXPECT_EQ(claim("two").kind, Answered::busy) << i;  // by the renewed lease
    under_test_->jump_clock(450'000);
    EXPECT_NE(claim("two").kind, Answered::busy) << i;
  }
}

TEST_P(StoreSuite, H28_a_person_can_settle_or_reopen_a_claim_and_says_why) {
  const Claimant a{claims()};
  const ClaimRecord zombie = a.claim("pay 1").record;
  const ClaimRecord settled =
      claims()
          .force("bank", {"pay 1", ClaimState::done, "paper receipt", "asked the bank"})
          .value();
  EXPECT_EQ(settled.state, ClaimState::done);
  EXPECT_FALSE(a.change(zombie, ClaimState::retryable));
  EXPECT_EQ(a.claim("pay 1").record.result, "paper receipt");
  const ClaimRecord reopened =
      claims()
          .force("bank", {"pay 1", ClaimState::retryable, {}, "customer wants it again"})
          .value();
  EXPECT_EQ(reopened.generation, 2u);
  const ClaimRequest old{.id = "pay 1", .generation = 1};
  EXPECT_EQ(a.try_claim(std::span(&old, 1)).value().at(0).kind, Answered::stale);
  const ClaimAnswer again = a.claim("pay 1");
  ASSERT_EQ(again.kind, Answered::granted);
  EXPECT_EQ(again.record.generation, 2u);
  EXPECT_GT(again.record.fence, zombie.fence);
  std::vector<std::string> lines;
  const auto operations = records().operations("bank", 0, 10).value();
  for (const OperationRecord& line : operations)
    lines.push_back(line.action + ": " + line.subject + ": " + line.reason);
  EXPECT_EQ(lines, (std::vector<std::string>{"claim done: pay 1: asked the bank",
                                             "claim reopened: pay 1: customer wants it again"}));
  EXPECT_EQ(claims().force("bank", {"none", ClaimState::done, {}, "x"}).error().tag, "not_known");
  EXPECT_EQ(claims().force("bank", {"pay 1", ClaimState::done, {}, ""}).error().tag, "config");
  EXPECT_EQ(claims().force("bank", {"pay 1", ClaimState::running, {}, "x"}).error().tag, "config");
}

TEST_P(StoreSuite, claims_are_listed_by_state_from_an_id_on) {
  const Claimant a{claims()};
  std::map<std::string, ClaimState> expected;
  for (int i = 0; i < 20; ++i) {
    const std::string id = "pay " + std::to_string(10 + i);
    const ClaimRecord record = a.claim(id).record;
    expected[id] = i % 4 == 0 ? ClaimState::running : static_cast<ClaimState>(i % 4);
    if (i % 4 == 0) continue;
    ASSERT_TRUE(a.change(record, expected[id]));
  }
  std::map<std::string, ClaimState> found;
  std::string from;
  for (;;) {
    const auto page = claims().claims("bank", std::nullopt, from, 3).value();
    for (const ClaimRecord& record : page)
      EXPECT_TRUE(found.emplace(record.id, record.state).second);
    if (page.size() < 3) break;
    from = page.back().id + '\0';
  }
  EXPECT_EQ(found, expected);
  const auto doubtful = claims().claims("bank", ClaimState::in_doubt, "", 100).value();
  ASSERT_EQ(doubtful.size(), 5u);
  for (const ClaimRecord& record : doubtful) EXPECT_EQ(expected[record.id], ClaimState::in_doubt);
  EXPECT_TRUE(claims().claims("no such scope", std::nullopt, "", 10).value().empty());
}

TEST_P(StoreSuite, a_claim_whose_answer_was_lost_was_written_whole_or_not_at_all) {
  for (const bool kept : {true, false}) {
    const std::string id = kept ? "kept" : "lost";
    const Claimant a{claims()};
    under_test_->lose_next_commit(kept);
    const ClaimRequest request{.id = id};
    const auto answers = a.try_claim(std::span(&request, 1));
    ASSERT_FALSE(answers);
    ASSERT_EQ(answers.error().remedy, Remedy::recheck);
    const ClaimRecord found = a.look(id);
    if (found.id.empty()) {
      EXPECT_EQ(a.claim(id).kind, Answered::granted);
    } else {
      EXPECT_EQ(found.state, ClaimState::running);
      EXPECT_EQ(found.owner, "A");
      EXPECT_EQ(a.claim(id).kind, Answered::busy);
    }
  }
}

TEST_P(StoreSuite, H01_of_many_who_claim_at_the_same_time_one_gets_it) {
  constexpr int rounds = 100;
  constexpr int threads_count = 4;
  std::vector<std::atomic<int>> granted(rounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&, t] {
      const Claimant mine{claims(), "owner " + std::to_string(t)};
      for (int round = 0; round < rounds; ++round)
        if (mine.claim("pay " + std::to_string(round)).kind == Answered::granted)
          ++granted[static_cast<std::size_t>(round)];
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& count : granted) EXPECT_EQ(count, 1);
  EXPECT_EQ(claims().claims("bank", std::nullopt, "", 1000).value().size(), std::size_t{rounds});
}

}  // namespace once::testing
