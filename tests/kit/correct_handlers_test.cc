// SPDX-License-Identifier: Apache-2.0
// Handlers that are right pass every schedule, and the schedules are what they say.
#include <gtest/gtest.h>
#include <once/effect.h>

#include "kit/plans.h"
#include "testing/bank.h"

namespace once::testing {
namespace {

Handler append_each() {
  return each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
    ONCE_TRY(append_effect(transaction, delivery.id, delivery.body));
    return applied();
  });
}

Handler insert_each() {
  return each([](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
    ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, ?)",
                         {delivery.id, delivery.body}, rows(1)));
    return applied();
  });
}

Handler insert_batch() {
  return batch([](std::span<Work> work, SqlTransaction& sql) -> Status {
    for (const Work& one : work)
      ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, ?)",
                           {one.delivery->id, one.delivery->body}));
    return {};
  });
}

TEST(CorrectHandler, passes_on_a_key_value_store) {
  const Report report = check(memory_plan(append_each));
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.schedules, 150u);
  EXPECT_GT(report.deaths, 100u);
  EXPECT_GT(report.faults, 100u);
}

TEST(CorrectHandler, passes_on_an_sql_store) {
  SqlitePlan sqlite(insert_each);
  const Report report = check(sqlite.plan());
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.deaths, 30u);
}

TEST(CorrectHandler, passes_for_whole_batches) {
  SqlitePlan sqlite(insert_batch);
  const Report report = check(sqlite.plan());
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(CorrectHandler, passes_when_only_positions_tell_and_nothing_is_sent_twice) {
  Plan plan = memory_plan(append_each);
  plan.options.id.reset();
  plan.resends = false;
  const Report report = check(plan);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(CorrectHandler, passes_in_the_order_of_keys) {
  Plan plan = memory_plan(append_each);
  plan.options.order = Order::key;
  const Report report = check(plan);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(CorrectHandler, may_put_messages_off) {
  const auto second_time = [] {
    return each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
      if (delivery.deferral.attempts == 0 && delivery.body.back() % 2 == 0)
        return later("not at once", 60'000);
      ONCE_TRY(append_effect(transaction, delivery.id, delivery.body));
      return applied();
    });
  };
  Plan plan = memory_plan(second_time);
  plan.options.order = Order::key;
  const Report report = check(plan);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.deaths, 30u);
}

TEST(CorrectHandler, passes_in_any_order) {
  Plan plan = memory_plan(append_each);
  plan.any_order = true;
  const Report report = check(plan);
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(CorrectHandler, may_refuse_and_set_aside) {
  const Report report = check(memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
      ONCE_TRY(append_effect(transaction, delivery.id));
      if (delivery.id == "m3") return parked("cannot");
      if (delivery.id == "m5") return retry("never");
      return applied();
    });
  }));
  EXPECT_TRUE(report.ok()) << report.text();
}

TEST(CorrectHandler, may_throw_now_and_then) {
  auto calls = std::make_shared<int>(0);
  const Report report = check(memory_plan([calls] {
    return each(
        [calls](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          ONCE_TRY(append_effect(transaction, delivery.id));
          if (++*calls % 11 == 0) throw std::runtime_error("not now");
          return applied();
        });
  }));
  EXPECT_TRUE(report.ok()) << report.text();
}

// --- Effects outside the store.

struct Elsewhere {
  std::unique_ptr<Bank> bank;
  const bool tells_duplicates;

  Plan plan(std::function<Handler()> handler) {
    Plan plan = memory_plan(std::move(handler));
    plan.messages = some_messages(5);
    plan.failures = 300;
    plan.reorders = 5;
    plan.fresh_store = [this] {
      bank = std::make_unique<Bank>(tells_duplicates);
      return open_memory_store();
    };
    plan.effects = [this](Store&) -> Result<std::vector<Effect>> {
      std::vector<Effect> effects;
      for (const std::string& id : bank->paid()) effects.push_back({id});
      return effects;
    };
    return plan;
  }
  Outside::Run pay() {
    return [this](const Delivery& delivery, Ticket& ticket) -> Result<Outcome> {
      return applied(ONCE_TRY(bank->pay(ticket.downstream_id(), std::string(delivery.id))));
    };
  }
};

TEST(CorrectHandler, passes_with_a_keyed_effect) {
  Elsewhere elsewhere{nullptr, true};
  const Report report = check(elsewhere.plan([&] { return handler_of(Keyed{elsewhere.pay()}); }));
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.deaths, 30u);
}

TEST(CorrectHandler, passes_with_a_queryable_effect) {
  Elsewhere elsewhere{nullptr, false};
  const Report report = check(elsewhere.plan([&] {
    return handler_of(Queryable{elsewhere.pay(), [&](const Ticket& ticket) {
                                  return elsewhere.bank->ask(ticket.downstream_id());
                                }});
  }));
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_GT(report.deaths, 30u);
}

TEST(BrokenEffect, that_claims_to_be_keyed_is_found) {
  Elsewhere elsewhere{nullptr, false};  // it does not tell duplicates
  const Report report = check(elsewhere.plan([&] { return handler_of(Keyed{elsewhere.pay()}); }));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::doubled);
  EXPECT_EQ(report.findings[0].id, "m0");
  const Report again = check(elsewhere.plan([&] { return handler_of(Keyed{elsewhere.pay()}); }));
  EXPECT_EQ(again.findings, report.findings);
}

// --- The kit's own promises.

TEST(Kit, refuses_a_plan_that_is_incomplete) {
  const Report report = check({});
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::refused);
}

TEST(Kit, refuses_what_the_pipeline_refuses) {
  const Report report = check(memory_plan(insert_each));  // SQL on a store without
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::refused);
  EXPECT_NE(report.findings[0].text.find("SQL"), std::string::npos);
}

TEST(Kit, refuses_messages_without_an_id) {
  Plan plan = memory_plan(append_each);
  plan.messages[2].id.clear();
  const Report report = check(plan);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Finding::Kind::refused);
}

TEST(Kit, takes_ids_by_the_rule_of_the_pipeline) {
  Plan plan = memory_plan(append_each);
  plan.options.id = IdRule::parse("json:/order").value();
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    plan.messages[i].id = "delivery " + std::to_string(i);
    plan.messages[i].body = R"({"order":"o)" + std::to_string(i) + "\"}";
  }
  const Report report = check(plan);
  EXPECT_TRUE(report.ok()) << report.text();
}

}  // namespace
}  // namespace once::testing
