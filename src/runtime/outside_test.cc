// SPDX-License-Identifier: Apache-2.0
// Pipelines whose effect is outside the store.
#include <gtest/gtest.h>
#include <once/effect.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <variant>
#include <vector>

#include "store/memory/memory.h"
#include "testing/bank.h"
#include "testing/effects.h"
#include "testing/memory_queue.h"
#include "testing/script_source.h"

namespace once {
namespace {

using testing::Bank;
using testing::numbered;
using testing::ScriptSource;
using Answer = Bank::Answer;

class OutsideTest : public ::testing::Test {
 protected:
  OutsideTest() {
    options_.scope = "bank";
    options_.id = IdRule{};
    options_.stop_at_end = true;
    options_.batch_wait_ms = 1;
    options_.batch_count_max = 7;
    options_.retry.backoff_ms_min = 1;
    options_.retry.backoff_ms_max = 5;
    for (int i = 0; i < 40; ++i) add("m" + std::to_string(i));
    source_.announce("p0");
  }

  void add(const std::string& id, const std::string& body = "b") {
    source_.add("p0", {.id = id, .key = {}, .body = body, .headers = {}, .timestamp_ms = 1000});
  }

  Outside::Run paying(Bank& bank) {
    return [&bank](const Delivery& delivery, Ticket& ticket) -> Result<Outcome> {
      return applied(ONCE_TRY(bank.pay(ticket.downstream_id(), std::string(delivery.id))));
    };
  }
  Resolver asking(Bank& bank) {
    return [&bank](const Ticket& ticket) { return bank.ask(ticket.downstream_id()); };
  }

  Statistics run(Handler handler) {
    auto pipeline = Pipeline::make(source_, store_, std::move(handler), options_);
    EXPECT_TRUE(pipeline) << pipeline.error().text;
    const Status done = (*pipeline)->run();
    EXPECT_TRUE(done) << done.error().text;
    return (*pipeline)->statistics();
  }
  std::vector<ParkedRecord> set_aside() { return store_.records()->parked("bank", 0, 100).value(); }

  MemoryStore store_{system_clock()};
  ScriptSource source_;
  PipelineOptions options_;
};

TEST_F(OutsideTest, every_message_has_one_effect_in_order_and_the_position_moves) {
  Bank bank;
  const Statistics counted = run(handler_of(Keyed{paying(bank)}));
  EXPECT_EQ(bank.paid(), numbered(40));
  EXPECT_EQ(counted.applied, 40u);
  EXPECT_EQ(store_.position("bank", "p0").value().offset, 40);
}

TEST_F(OutsideTest, duplicates_in_and_across_batches_have_no_effect) {
  for (int i = 0; i < 40; i += 3) add("m" + std::to_string(i));
  add("new");
  add("new");
  Bank bank;
  const Statistics counted = run(handler_of(Keyed{paying(bank)}));
  auto expected = numbered(40);
  expected.push_back("new");
  EXPECT_EQ(bank.paid(), expected);
  EXPECT_EQ(counted.duplicates, 15u);
}

TEST_F(OutsideTest, a_keyed_effect_is_repeated_under_the_same_id_after_a_lost_answer) {
  Bank bank(/*tells_duplicates=*/true);
  bank.answer = [](std::size_t n) { return n % 4 == 0 ? Answer::lost : Answer::arrives; };
  const Statistics counted = run(handler_of(Keyed{paying(bank)}));
  EXPECT_EQ(bank.paid(), numbered(40));
  EXPECT_EQ(counted.applied, 40u);
  EXPECT_GT(counted.retried, 0u);
}

TEST_F(OutsideTest, a_queryable_effect_is_asked_about_after_a_lost_answer) {
  Bank bank;  // would pay twice
  bank.answer = [](std::size_t n) {
    return n % 3 == 0 ? Answer::lost : n % 3 == 1 ? Answer::refused_before : Answer::arrives;
  };
  run(handler_of(Queryable{paying(bank), asking(bank)}));
  EXPECT_EQ(bank.paid(), numbered(40));
}

TEST_F(OutsideTest, an_opaque_effect_keeps_the_promise_it_names_and_no_more) {
  for (const bool least : {true, false}) {
    Bank bank;
    bank.answer = [](std::size_t n) { return n == 5 ? Answer::lost : Answer::arrives; };
    options_.scope = least ? "least" : "most";
    options_.semantics = least ? Semantics::at_least_once : Semantics::at_most_once;
    source_.announce("p0");
    run(least ? handler_of(Opaque<Semantics::at_least_once>{paying(bank)})
              : handler_of(Opaque<Semantics::at_most_once>{paying(bank)}));
    auto expected = numbered(40);
    if (least) expected.insert(expected.begin() + 4, "m4");  // was paid, and nobody knew
    EXPECT_EQ(bank.paid(), expected);
  }
}

TEST_F(OutsideTest, an_opaque_effect_whose_answer_is_lost_is_not_repeated_at_most_once) {
  Bank bank;
  bank.answer = [](std::size_t n) { return n == 5 ? Answer::lost : Answer::arrives; };
  options_.semantics = Semantics::at_most_once;
  run(handler_of(Opaque<Semantics::at_most_once>{paying(bank)}));
  EXPECT_EQ(bank.paid(), numbered(40));
  const auto claims = store_.claims()->claims("bank", ClaimState::rejected, "", 10).value();
  ASSERT_EQ(claims.size(), 1u);
  EXPECT_EQ(claims[0].id, "m4");
}

TEST_F(OutsideTest, what_the_other_side_cannot_tell_is_parked_and_stays_in_doubt) {
  Bank bank;
  bank.answer = [](std::size_t n) { return n == 5 ? Answer::lost : Answer::arrives; };
  options_.retry.attempts_max = 3;
  run(handler_of(Queryable{paying(bank), [](const Ticket&) { return Resolution{}; }}));
  EXPECT_EQ(bank.paid(), numbered(40));
  ASSERT_EQ(set_aside().size(), 1u);
  EXPECT_EQ(set_aside()[0].message.id, "m4");
  EXPECT_NE(set_aside()[0].reason.find("in doubt"), std::string::npos);
  EXPECT_EQ(store_.claims()->claims("bank", ClaimState::in_doubt, "", 10).value().size(), 1u);
}

// It is no store that is away.
TEST_F(OutsideTest, a_claim_that_another_owner_holds_is_waited_for_and_told_as_that) {
  std::mutex mutex;
  std::vector<Event> told;
  options_.observer = [&](const Event& event) {
    const std::scoped_lock lock(mutex);
    told.push_back(event);
  };
  auto others = Claims::make(store_, {}, system_clock()).value();
  auto held = others->begin("bank", ClaimRequest{.id = "m0"});
  ASSERT_TRUE(std::holds_alternative<Execute>(held));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
    EXPECT_TRUE(std::get<Execute>(held).ticket.release("somebody else's turn"));
  });
  Bank bank;
  run(handler_of(Keyed{paying(bank)}));
  other.join();
  EXPECT_EQ(bank.paid(), numbered(40));
  const auto of_kind = [&](EventKind kind) {
    return std::count_if(told.begin(), told.end(),
                         [&](const Event& event) { return event.kind == kind; });
  };
  EXPECT_EQ(of_kind(EventKind::claim_awaited), 1);
  EXPECT_EQ(of_kind(EventKind::claim_free), 1);
  EXPECT_EQ(of_kind(EventKind::store_away), 0);
  for (const Event& event : told)
    if (event.kind == EventKind::claim_awaited) {
      EXPECT_NE(event.text.find("waiting for a claim: \"m0\" is being run by another owner"),
                std::string::npos)
          << event.text;
    }
}

TEST_F(OutsideTest, an_exception_means_that_nobody_knows) {
  Bank bank(/*tells_duplicates=*/true);
  int calls = 0;
  run(handler_of(Keyed{[&](const Delivery& delivery, Ticket& ticket) -> Result<Outcome> {
    auto receipt = bank.pay(ticket.downstream_id(), std::string(delivery.id));
    if (++calls % 5 == 0) throw std::runtime_error("after the effect");
    return applied(*receipt);
  }}));
  EXPECT_EQ(bank.paid(), numbered(40));
}

TEST_F(OutsideTest, M10_a_failure_releases_or_binds_or_keeps_the_steps_by_choice) {
  for (const OnFailure choice : {OnFailure::keep_steps, OnFailure::release, OnFailure::bind}) {
    const auto number = std::to_string(static_cast<int>(choice));
    options_.scope = "bank " + number;
    source_.announce("p0");
    Bank bank;
    int failures = 0;
    const auto two_steps = [&](const Delivery& delivery, Ticket& ticket) -> Result<Outcome> {
      ONCE_TRY(ticket.step(
          "charge", [&](const std::string& id) { return bank.pay(id, std::string(delivery.id)); }));
      if (delivery.id == "m3" && failures++ == 0) return retry("no receipt yet");
      return applied();
    };
    const Statistics counted = run(handler_of(Keyed{two_steps, {.on_failure = choice}}));
    auto expected = numbered(40);
    if (choice == OnFailure::release) expected.insert(expected.begin() + 3, "m3");
    EXPECT_EQ(bank.paid(), expected);
    EXPECT_EQ(counted.rejected, choice == OnFailure::bind ? 1u : 0u);
    EXPECT_EQ(counted.applied, choice == OnFailure::bind ? 39u : 40u);
  }
}

TEST_F(OutsideTest, outcomes_are_what_the_effect_says) {
  Bank bank;
  const Statistics counted =
      run(handler_of(Keyed{[&](const Delivery& delivery, Ticket&) -> Result<Outcome> {
        if (delivery.id == "m1") return rejected("closed");
        if (delivery.id == "m2") return parked("broken");
        if (delivery.id == "m3") return no_effect();
        if (delivery.id == "m4") return fail(Remedy::park, "bad", "cannot be");
        return applied();
      }}));
  EXPECT_EQ(counted.applied, 36u);
  EXPECT_EQ(counted.rejected, 1u);
  EXPECT_EQ(counted.no_effect, 1u);
  EXPECT_EQ(counted.parked, 2u);
  EXPECT_EQ(set_aside().size(), 2u);
}

TEST_F(OutsideTest, H13_a_message_that_reuses_an_id_is_parked) {
  add("m1", "another body");
  Bank bank;
  const Statistics counted = run(handler_of(Keyed{paying(bank)}));
  EXPECT_EQ(bank.paid(), numbered(40));
  EXPECT_EQ(counted.mismatched, 1u);
  EXPECT_EQ(set_aside().size(), 1u);
}

TEST_F(OutsideTest, H21_a_message_that_another_owner_runs_is_waited_for) {
  ClaimsOptions other;
  other.lease_ms = 40;
  other.after_loss = AfterLoss::retry;
  other.renew_in_background = false;
  auto claims = Claims::make(store_, other).value();
  ClaimVerdict taken = claims->begin("bank", {.id = "m6"});
  ASSERT_TRUE(std::holds_alternative<Execute>(taken));
  Bank bank;
  run(handler_of(Keyed{paying(bank)}));  // its lease runs out, then it is ours
  EXPECT_EQ(bank.paid(), numbered(40));
  EXPECT_EQ(std::get<Execute>(taken).ticket.done().error().tag, "superseded");
}

// Of a source without order the others need not wait with it.
TEST_F(OutsideTest, a_message_that_another_owner_runs_holds_back_no_other_of_a_queue) {
  const auto queue = std::make_shared<testing::MemoryQueue>(system_clock());
  for (const std::string& id : numbered(40)) queue->send({.id = id, .timestamp_ms = 1000});
  testing::QueueSource source(queue);
  auto claims = Claims::make(store_, {}).value();
  auto verdict = claims->begin("bank", {.id = "m5"});
  ASSERT_TRUE(std::holds_alternative<Execute>(verdict));
  Ticket& elsewhere = std::get<Execute>(verdict).ticket;
  Bank bank;
  options_.retention_ms = -1;
  auto pipeline = Pipeline::make(source, store_, handler_of(Keyed{paying(bank)}), options_).value();
  std::thread running([&] {
    const Status done = pipeline->run();
    EXPECT_TRUE(done) << done.error().text;
  });
  for (int i = 0; i < 10'000 && queue->acknowledged().size() < 39; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(queue->acknowledged().size(), 39u) << "all others were handled while it was run";
  ASSERT_TRUE(elsewhere.release("given up"));
  running.join();
  std::vector<std::string> paid = bank.paid();
  ASSERT_EQ(paid.size(), 40u);
  EXPECT_EQ(paid.back(), "m5");
  std::vector<std::string> expected = numbered(40);
  std::sort(paid.begin(), paid.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(paid, expected);
  EXPECT_EQ(pipeline->statistics().parked, 0u) << "to wait for another is no failed attempt";
}

TEST_F(OutsideTest, promises_that_cannot_be_kept_do_not_start) {
  Bank bank;
  const auto error_of = [&](Handler handler) {
    const auto pipeline = Pipeline::make(source_, store_, std::move(handler), options_);
    EXPECT_FALSE(pipeline);
    return pipeline ? std::string() : pipeline.error().text;
  };
  EXPECT_NE(error_of(handler_of(Opaque<Semantics::at_least_once>{paying(bank)})).find("This would"),
            std::string::npos);
  options_.semantics = Semantics::at_most_once;
  EXPECT_NE(error_of(handler_of(Opaque<Semantics::at_least_once>{paying(bank)})).find("repeated"),
            std::string::npos);
  options_.semantics = Semantics::effectively_once;
  options_.id.reset();
  EXPECT_NE(error_of(handler_of(Keyed{paying(bank)})).find("id rule"), std::string::npos);
}

TEST_F(OutsideTest, the_typed_way_makes_the_same_pipeline) {
  Bank bank;
  auto pipeline =
      make_pipeline<Semantics::effectively_once>(source_, store_, Keyed{paying(bank)}, options_);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE((*pipeline)->run());
  EXPECT_EQ(bank.paid(), numbered(40));
  static_assert(can_keep(promise_of<Queryable>, Semantics::effectively_once));
  static_assert(can_keep(promise_of<Keyed>, Semantics::at_least_once));
  static_assert(!can_keep(promise_of<Opaque<Semantics::at_most_once>>, Semantics::at_least_once));
}

}  // namespace
}  // namespace once
