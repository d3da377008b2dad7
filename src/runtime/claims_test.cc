// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/claims.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "store/memory/memory.h"
#include "testing/bank.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::Bank;
using testing::SimClock;

class ClaimsTest : public ::testing::Test {
 protected:
  ClaimsTest() { options_.renew_in_background = false; }

  std::unique_ptr<Claims> make() { return Claims::make(store_, options_, clock_).value(); }

  static ClaimRequest pay(std::string_view id, int content = 0) {
    Fingerprint fingerprint{1, {}};
    fingerprint.digest[0] = static_cast<std::uint8_t>(content);
    return {.id = id, .fingerprint = fingerprint};
  }
  template <class T>
  static T take(ClaimVerdict verdict) {
    EXPECT_TRUE(std::holds_alternative<T>(verdict)) << "verdict " << verdict.index();
    return std::get<T>(std::move(verdict));
  }
  ClaimRecord look(std::string_view id) {
    return store_.claims()->claims("bank", std::nullopt, id, 1).value().at(0);
  }

  SimClock clock_;
  MemoryStore store_{clock_};
  ClaimsOptions options_;
};

TEST_F(ClaimsTest, an_effect_runs_once_and_duplicates_get_its_result) {
  auto claims = make();
  {
    auto mine = take<Execute>(claims->begin("bank", pay("order 100")));
    EXPECT_GT(mine.ticket.fence(), 0u);
    EXPECT_GT(take<InProgress>(claims->begin("bank", pay("order 100"))).retry_after_ms, 0);
    ASSERT_TRUE(mine.ticket.done("receipt 9"));
    EXPECT_EQ(mine.ticket.done("again").error().tag, "config");
  }
  const auto duplicate = take<Duplicate>(make()->begin("bank", pay("order 100")));
  EXPECT_EQ(duplicate.outcome, applied("receipt 9"));
  EXPECT_TRUE(duplicate.result_kept);
}

TEST_F(ClaimsTest, a_result_that_is_too_large_is_told_from_an_empty_one) {
  options_.result_bytes_max = 10;
  auto claims = make();
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("large"))).ticket.done("01234567890"));
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("empty"))).ticket.done(""));
  EXPECT_FALSE(take<Duplicate>(claims->begin("bank", pay("large"))).result_kept);
  EXPECT_TRUE(take<Duplicate>(claims->begin("bank", pay("empty"))).result_kept);
}

TEST_F(ClaimsTest, H07_a_rejection_is_remembered_and_a_release_is_not) {
  auto claims = make();
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("a"))).ticket.reject("no money"));
  EXPECT_EQ(take<Duplicate>(claims->begin("bank", pay("a"))).outcome, rejected("no money"));
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("b"))).ticket.release("bank is away"));
  EXPECT_EQ(take<Execute>(claims->begin("bank", pay("b"))).ticket.attempt(), 2u);
}

TEST_F(ClaimsTest, a_ticket_that_dies_unsettled_leaves_what_its_policy_says) {
  for (const auto& [after, state] : {std::pair{AfterLoss::retry, ClaimState::retryable},
                                     {AfterLoss::doubt, ClaimState::in_doubt},
                                     {AfterLoss::give_up, ClaimState::rejected}}) {
    options_.after_loss = after;
    auto claims = make();
    const std::string id = name_of(state);
    take<Execute>(claims->begin("bank", pay(id)));
    EXPECT_EQ(look(id).state, state);
  }
}

TEST_F(ClaimsTest, moving_a_ticket_moves_the_right) {
  auto claims = make();
  Ticket first = take<Execute>(claims->begin("bank", pay("a"))).ticket;
  Ticket second = take<Execute>(claims->begin("bank", pay("b"))).ticket;
  Ticket moved = std::move(first);
  EXPECT_EQ(moved.id(), "a");
  moved = std::move(second);
  EXPECT_EQ(moved.id(), "b");
  ASSERT_TRUE(moved.done());
  EXPECT_EQ(look("b").state, ClaimState::done);
}

TEST_F(ClaimsTest, H13_the_same_id_for_something_else_is_a_mismatch) {
  auto claims = make();
  auto mine = take<Execute>(claims->begin("bank", pay("a", 1)));
  const auto mismatch = take<Mismatch>(claims->begin("bank", pay("a", 2)));
  EXPECT_EQ(mismatch.stored, pay("a", 1).fingerprint);
  EXPECT_EQ(mismatch.offered, pay("a", 2).fingerprint);
  ASSERT_TRUE(mine.ticket.done());
  take<Mismatch>(claims->begin("bank", pay("a", 2)));
}

TEST_F(ClaimsTest, H06_finished_steps_are_not_repeated_after_a_failure) {
  options_.after_loss = AfterLoss::retry;
  Bank bank;
  int receipts_sent = 0;
  const auto attempt = [&](Claims& claims, bool mail_works) -> Status {
    auto mine = take<Execute>(claims.begin("bank", pay("order 100")));
    const std::string receipt = ONCE_TRY(mine.ticket.step(
        "charge", [&](const std::string& id) { return bank.pay(id, "order 100"); }));
    EXPECT_EQ(receipt, "receipt 1");
    ONCE_TRY(mine.ticket.step("mail", [&](const std::string&) -> Result<std::string> {
      if (!mail_works) return fail(Remedy::retry, "away", "the mail server is away");
      ++receipts_sent;
      return std::string();
    }));
    return mine.ticket.done(receipt);
  };
  EXPECT_FALSE(attempt(*make(), false));
  EXPECT_FALSE(attempt(*make(), false));
  ASSERT_TRUE(attempt(*make(), true));
  EXPECT_EQ(bank.paid(), std::vector<std::string>{"order 100"});
  EXPECT_EQ(receipts_sent, 1);
}

TEST_F(ClaimsTest, downstream_ids_are_stable_over_attempts_and_differ_otherwise) {
  options_.after_loss = AfterLoss::retry;
  auto claims = make();
  std::set<std::string> ids;
  std::string charge;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto mine = take<Execute>(claims->begin("bank", pay("a")));
    charge = mine.ticket.downstream_id("charge");
    EXPECT_EQ(charge.size(), 32u);
    ids.insert({charge, mine.ticket.downstream_id("mail"), mine.ticket.downstream_id()});
  }
  EXPECT_EQ(ids.size(), 3u);
  auto other_scope = take<Execute>(claims->begin("bank 2", pay("a")));
  auto other_id = take<Execute>(claims->begin("bank", pay("b")));
  EXPECT_FALSE(ids.contains(other_scope.ticket.downstream_id("charge")));
  EXPECT_FALSE(ids.contains(other_id.ticket.downstream_id("charge")));
  ASSERT_TRUE(store_.claims()->force("bank", {"a", ClaimState::retryable, {}, "again"}));
  auto forced = take<Execute>(claims->begin("bank", pay("a")));
  EXPECT_FALSE(ids.contains(forced.ticket.downstream_id("charge")));  // meant as another effect
}

TEST_F(ClaimsTest, H03_H16_a_paused_owner_is_told_and_its_fence_is_smaller) {
  options_.after_loss = AfterLoss::retry;
  auto slow = make();
  auto quick = make();
  auto paused = take<Execute>(slow->begin("bank", pay("a")));
  clock_.step(options_.lease_ms + 1);
  auto taken = take<Execute>(quick->begin("bank", pay("a")));
  EXPECT_GT(taken.ticket.fence(), paused.ticket.fence());
  EXPECT_FALSE(paused.ticket.lost());
  ASSERT_TRUE(slow->renew());
  EXPECT_TRUE(paused.ticket.lost());
  EXPECT_EQ(paused.ticket.done("late").error().tag, "superseded");
  const auto step = paused.ticket.step("s", [](const std::string&) { return std::string("x"); });
  EXPECT_EQ(step.error().tag, "superseded");
  ASSERT_TRUE(taken.ticket.done("in time"));
  EXPECT_EQ(take<Duplicate>(slow->begin("bank", pay("a"))).outcome, applied("in time"));
}

TEST_F(ClaimsTest, a_renewed_lease_keeps_rivals_away) {
  auto owner = make();
  auto rival = make();
  auto mine = take<Execute>(owner->begin("bank", pay("a")));
  for (int i = 0; i < 10; ++i) {
    clock_.step(options_.lease_ms - 1);
    ASSERT_TRUE(owner->renew());
    take<InProgress>(rival->begin("bank", pay("a")));
  }
  EXPECT_FALSE(mine.ticket.lost());
  ASSERT_TRUE(mine.ticket.done());
}

TEST_F(ClaimsTest, H05_in_doubt_the_other_side_is_asked) {
  Bank bank;
  // Asked before anything is known to have happened ...
  options_.resolver = [&](const Ticket& ticket) { return bank.ask(ticket.downstream_id()); };
  auto claims = make();
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("a"))).ticket.doubt("no answer"));
  auto again = take<Execute>(claims->begin("bank", pay("a")));
  // ... and after it has, when only the answer was lost.
  ASSERT_TRUE(bank.pay(again.ticket.downstream_id(), "a"));
  ASSERT_TRUE(again.ticket.doubt("no answer"));
  EXPECT_EQ(take<Duplicate>(claims->begin("bank", pay("a"))).outcome, applied("receipt 1"));
  EXPECT_EQ(bank.paid(), std::vector<std::string>{"a"});
}

TEST_F(ClaimsTest, what_nobody_can_resolve_stays_in_the_queue) {
  Resolution known;
  options_.resolver = [&](const Ticket& ticket) -> Resolution {
    if (ticket.id() == "thrown") throw std::runtime_error("asking failed");
    return ticket.id() == "known" ? known : Resolution{};
  };
  auto claims = make();
  for (const char* id : {"known", "unknown", "thrown"})
    ASSERT_TRUE(take<Execute>(claims->begin("bank", pay(id))).ticket.doubt("no answer"));
  EXPECT_EQ(claims->resolve("bank").value(), 3u);
  known = {Resolution::Kind::refused, "no such account"};
  EXPECT_EQ(claims->resolve("bank").value(), 2u);
  EXPECT_EQ(look("known").state, ClaimState::rejected);
  EXPECT_EQ(look("known").reason, "no such account");
  EXPECT_EQ(store_.claims()->claims("bank", ClaimState::in_doubt, "", 10).value().size(), 2u);
  auto doubtful = take<InDoubt>(claims->begin("bank", pay("unknown")));
  ASSERT_TRUE(doubtful.ticket.proceed());
  ASSERT_TRUE(doubtful.ticket.done("by hand"));
  EXPECT_EQ(claims->resolve("bank").value(), 1u);
}

TEST_F(ClaimsTest, what_did_not_happen_is_free_after_resolving) {
  options_.resolver = [](const Ticket&) {
    return Resolution{Resolution::Kind::did_not_happen, {}};
  };
  auto claims = make();
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("a"))).ticket.doubt("no answer"));
  EXPECT_EQ(claims->resolve("bank").value(), 0u);
  EXPECT_EQ(look("a").state, ClaimState::retryable);
}

TEST_F(ClaimsTest, H21_callers_of_one_program_wait_for_the_one_that_runs) {
  options_.when_busy = WhenBusy::wait;
  auto claims = Claims::make(store_, options_).value();
  auto mine = take<Execute>(claims->begin("bank", pay("a")));
  std::atomic<int> answered = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      EXPECT_EQ(take<Duplicate>(claims->begin("bank", pay("a"))).outcome, applied("one result"));
      ++answered;
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(answered, 0);
  ASSERT_TRUE(mine.ticket.done("one result"));
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(answered, 8);
}

TEST_F(ClaimsTest, H21_when_the_one_that_runs_fails_one_of_the_waiting_goes_on) {
  options_.when_busy = WhenBusy::wait;
  auto claims = Claims::make(store_, options_).value();
  auto mine = take<Execute>(claims->begin("bank", pay("a")));
  std::atomic<int> executed = 0, duplicates = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&] {
      ClaimVerdict verdict = claims->begin("bank", pay("a"));
      if (auto* execute = std::get_if<Execute>(&verdict)) {
        ++executed;
        EXPECT_TRUE(execute->ticket.done("second"));
      } else {
        EXPECT_EQ(take<Duplicate>(std::move(verdict)).outcome, applied("second"));
        ++duplicates;
      }
    });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(mine.ticket.release("failed"));
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(executed, 1);
  EXPECT_EQ(duplicates, 5);
}

TEST_F(ClaimsTest, busy_can_also_be_told_refused_or_waited_for_with_a_limit) {
  auto owner = make();
  auto mine = take<Execute>(owner->begin("bank", pay("a")));
  options_.when_busy = WhenBusy::refuse;
  const auto refused = take<Unavailable>(make()->begin("bank", pay("a")));
  EXPECT_EQ(refused.error.tag, "busy");
  options_.when_busy = WhenBusy::wait;
  options_.wait_ms_max = 20;
  take<InProgress>(Claims::make(store_, options_).value()->begin("bank", pay("a")));
  ASSERT_TRUE(mine.ticket.done());
}

TEST_F(ClaimsTest, H25_many_are_claimed_and_settled_together) {
  auto claims = make();
  ASSERT_TRUE(take<Execute>(claims->begin("bank", pay("old"))).ticket.done("was"));
  const std::vector<ClaimRequest> requests{pay("a"), pay("old"), pay("a"), pay("b")};
  auto verdicts = claims->begin("bank", requests);
  ASSERT_EQ(verdicts.size(), 4u);
  std::vector<Ticket> tickets;
  tickets.push_back(take<Execute>(std::move(verdicts[0])).ticket);
  EXPECT_EQ(take<Duplicate>(std::move(verdicts[1])).outcome, applied("was"));
  take<InProgress>(std::move(verdicts[2]));
  tickets.push_back(take<Execute>(std::move(verdicts[3])).ticket);
  const std::vector<Outcome> outcomes{applied("done a"), rejected("no b")};
  EXPECT_EQ(claims->settle(tickets, outcomes).value(), (std::vector{true, true}));
  tickets.clear();
  EXPECT_EQ(look("a").result, "done a");
  EXPECT_EQ(look("b").reason, "no b");
}

TEST_F(ClaimsTest, H30_a_store_that_fails_lets_nothing_run) {
  auto claims = make();
  store_.set_commit_fault([] { return MemoryStore::CommitFault::refused; });
  EXPECT_EQ(take<Unavailable>(claims->begin("bank", pay("a"))).error.remedy, Remedy::retry);
  const std::vector<ClaimRequest> requests{pay("a"), pay("b")};
  for (ClaimVerdict& verdict : claims->begin("bank", requests))
    take<Unavailable>(std::move(verdict));
  EXPECT_EQ(take<Unavailable>(claims->begin("", pay("a"))).error.tag, "config");
}

TEST_F(ClaimsTest, a_claim_whose_answer_was_lost_is_found_again) {
  for (const bool kept : {true, false}) {
    auto claims = make();
    store_.set_commit_fault([kept, first = true]() mutable {
      if (!std::exchange(first, false)) return MemoryStore::CommitFault::none;
      return kept ? MemoryStore::CommitFault::lost_after : MemoryStore::CommitFault::lost_before;
    });
    const std::string id = kept ? "kept" : "lost";
    ClaimVerdict verdict = claims->begin("bank", pay(id));
    if (kept) {
      ASSERT_TRUE(take<Execute>(std::move(verdict)).ticket.done());
    } else {
      EXPECT_EQ(take<Unavailable>(std::move(verdict)).error.remedy, Remedy::retry);
      ASSERT_TRUE(take<Execute>(claims->begin("bank", pay(id))).ticket.done());
    }
  }
}

TEST_F(ClaimsTest, a_settlement_whose_answer_was_lost_counts_if_it_was_written) {
  auto claims = make();
  const auto lose_next = [&](MemoryStore::CommitFault fault) {
    store_.set_commit_fault([fault, first = true]() mutable {
      return std::exchange(first, false) ? fault : MemoryStore::CommitFault::none;
    });
  };
  auto kept = take<Execute>(claims->begin("bank", pay("kept")));
  lose_next(MemoryStore::CommitFault::lost_after);
  EXPECT_TRUE(kept.ticket.done("r"));
  EXPECT_EQ(look("kept").result, "r");
  auto refused = take<Execute>(claims->begin("bank", pay("refused")));
  lose_next(MemoryStore::CommitFault::refused);
  EXPECT_EQ(refused.ticket.done("r").error().remedy, Remedy::retry);
  EXPECT_TRUE(refused.ticket.done("r"));  // the ticket is still good
}

TEST_F(ClaimsTest, a_settlement_that_never_arrived_can_be_tried_again) {
  auto claims = make();
  auto mine = take<Execute>(claims->begin("bank", pay("a")));
  store_.set_commit_fault([first = true]() mutable {
    return std::exchange(first, false) ? MemoryStore::CommitFault::lost_before
                                       : MemoryStore::CommitFault::none;
  });
  EXPECT_EQ(mine.ticket.done("r").error().remedy, Remedy::retry);
  EXPECT_FALSE(mine.ticket.lost());
  EXPECT_TRUE(mine.ticket.done("r"));
  EXPECT_EQ(look("a").result, "r");
}

TEST_F(ClaimsTest, leases_are_renewed_in_the_background) {
  options_.renew_in_background = true;
  options_.lease_ms = 600;  // a machine that is busy may pause us for a while
  MemoryStore store(system_clock());
  auto owner = Claims::make(store, options_).value();
  auto rival = Claims::make(store, options_).value();
  auto mine = take<Execute>(owner->begin("bank", pay("a")));
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(70));
    take<InProgress>(rival->begin("bank", pay("a")));
  }
  EXPECT_TRUE(mine.ticket.done());
}

TEST_F(ClaimsTest, bad_options_are_refused) {
  options_.lease_ms = 1;
  EXPECT_EQ(Claims::make(store_, options_).error().tag, "config");
}

}  // namespace
}  // namespace once
