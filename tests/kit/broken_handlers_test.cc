// SPDX-License-Identifier: Apache-2.0
// Handlers with the bugs that people write: each is found, with the id and the schedule.
#include <gtest/gtest.h>

#include <set>

#include "kit/plans.h"

namespace once::testing {
namespace {

using Kind = Finding::Kind;

// The first finding of this kind.
const Finding* first(const Report& report, Kind kind) {
  for (const Finding& found : report.findings)
    if (found.kind == kind) return &found;
  return nullptr;
}

bool has_step(const Finding& found, const std::string& words) {
  for (const std::string& step : found.steps)
    if (step.find(words) != std::string::npos) return true;
  return false;
}

// Writes to the store, but past the transaction.
TEST(BrokenHandler, that_uses_a_connection_of_its_own_is_found) {
  auto current = std::make_shared<Store*>(nullptr);
  Plan plan = memory_plan([current] {
    return each([current](const Delivery& delivery, KeyValueTransaction&) -> Result<Outcome> {
      auto own = ONCE_TRY((*current)->begin("own"));
      ONCE_TRY(append_effect(*own->key_value(), delivery.id));
      ONCE_TRY(own->commit());
      return applied();
    });
  });
  plan.fresh_store = [current]() -> Result<std::unique_ptr<Store>> {
    auto store = ONCE_TRY(open_memory_store());
    *current = store.get();
    return store;
  };
  EXPECT_TRUE(run_twice(plan).ok());  // duplicates alone do not show it
  const Report report = crash_at_every_step(plan);
  const Finding* found = first(report, Kind::doubled);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_EQ(found->id, "m0");
  EXPECT_NE(found->schedule.find("crash_at_every_step: at call"), std::string::npos);
  EXPECT_TRUE(has_step(*found, "the process dies before: commit")) << report.text();
}

TEST(BrokenHandler, that_uses_another_database_is_found) {
  const MemoryScratch scratch;
  std::unique_ptr<Store> other;
  SqlitePlan sqlite([&] {
    return each([&](const Delivery& delivery, SqlTransaction& sql) -> Result<Outcome> {
      ONCE_TRY(sql.execute("INSERT INTO effect (id, what) VALUES (?, '')", {delivery.id}));
      auto own = ONCE_TRY(other->begin("own"));
      ONCE_TRY(own->sql()->execute("INSERT INTO mail (id) VALUES (?)", {delivery.id}));
      ONCE_TRY(own->commit());
      return applied();
    });
  });
  const auto fresh = sqlite.plan().fresh_store;
  sqlite.plan().fresh_store = [&, count = 0]() mutable -> Result<std::unique_ptr<Store>> {
    other = ONCE_TRY(open_sqlite_store(scratch.path(std::to_string(++count))));
    auto setup = ONCE_TRY(other->begin("setup"));
    ONCE_TRY(setup->sql()->execute("CREATE TABLE mail (n INTEGER PRIMARY KEY, id TEXT)"));
    ONCE_TRY(setup->commit());
    return fresh();
  };
  sqlite.plan().effects = [&](Store&) { return rows_of("SELECT id FROM mail ORDER BY n")(*other); };
  const Report report = crash_at_every_step(sqlite.plan());
  const Finding* found = first(report, Kind::doubled);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_EQ(found->id, "m0");
}

// A cache of what is in the store: after a rollback or a restart it is wrong.
TEST(BrokenHandler, that_keeps_state_in_memory_is_found) {
  Plan plan = memory_plan([] {
    auto total = std::make_shared<int>(0);
    return each(
        [total](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          *total += std::stoi(std::string(delivery.body));
          ONCE_TRY(append_effect(transaction, delivery.id, std::to_string(*total)));
          return applied();
        });
  });
  const Report report = crash_at_every_step(plan);
  const Finding* found = first(report, Kind::changed);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_TRUE(has_step(*found, "the process dies")) << report.text();
  EXPECT_FALSE(random_failures(plan).ok());
}

// Its own dedup, in memory: after a rollback the message counts as seen, and is lost.
TEST(BrokenHandler, that_remembers_ids_in_memory_is_found) {
  Plan plan = memory_plan([] {
    auto seen = std::make_shared<std::set<std::string, std::less<>>>();
    return each(
        [seen](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          if (!seen->emplace(delivery.id).second) return no_effect();
          ONCE_TRY(append_effect(transaction, delivery.id));
          return applied();
        });
  });
  EXPECT_TRUE(crash_at_every_step(plan).ok());  // a new process has seen nothing
  const Report report = random_failures(plan);
  const Finding* found = first(report, Kind::lost);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_EQ(found->schedule, "random_failures");
}

// Looks outside of the transaction whether it was done, then does it; nothing else tells.
TEST(BrokenHandler, that_reads_and_then_inserts_without_a_key_is_found) {
  auto current = std::make_shared<Store*>(nullptr);
  Plan plan = memory_plan([current] {
    return each(
        [current](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          for (const Effect& effect : ONCE_TRY(listed_effects(**current)))
            if (effect.id == delivery.id) return no_effect();
          ONCE_TRY(append_effect(transaction, delivery.id));
          return applied();
        });
  });
  plan.options.id.reset();
  plan.fresh_store = [current]() -> Result<std::unique_ptr<Store>> {
    auto store = ONCE_TRY(open_memory_store());
    *current = store.get();
    return store;
  };
  const Report report = run_twice(plan);
  const Finding* found = first(report, Kind::doubled);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_EQ(found->id, "m0");
  EXPECT_EQ(found->schedule, "run_twice: every message is sent twice in a row, one batch");
}

// A mail, a payment, ...: it is out before the commit is.
TEST(BrokenHandler, that_calls_out_before_the_commit_is_found) {
  EffectLedger mails;
  Plan plan = memory_plan([&] {
    return each([&](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      ONCE_TRY(append_effect(t, delivery.id));
      mails.note(delivery.id);
      return applied();
    });
  });
  plan.effects = [&](Store&) -> Result<std::vector<Effect>> {
    auto effects = mails.effects();
    mails.clear();
    return effects;
  };
  const Report report = check(plan);
  const Finding* found = first(report, Kind::doubled);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_TRUE(has_step(*found, "the process dies")) << report.text();
}

// A failed read is taken for "nothing to do".
TEST(BrokenHandler, that_says_applied_although_it_failed_is_found) {
  Plan plan = memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      if (!append_effect(t, delivery.id)) return applied();
      return applied();
    });
  });
  EXPECT_TRUE(crash_at_every_step(plan).ok());
  const Report report = random_failures(plan);
  const Finding* found = first(report, Kind::lost);
  ASSERT_NE(found, nullptr) << report.text();
  EXPECT_TRUE(has_step(*found, "the store refuses: get effects, for \"" + found->id + "\""))
      << report.text();
}

TEST(BrokenHandler, that_says_applied_and_does_nothing_is_found_without_any_fault) {
  const Report report = check(memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      if (delivery.id != "m4") ONCE_TRY(append_effect(t, delivery.id));
      return applied();
    });
  }));
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].kind, Kind::lost);
  EXPECT_EQ(report.findings[0].id, "m4");
  EXPECT_EQ(report.findings[0].schedule, "every message once");
}

// Nothing but the position tells, and messages are sent twice.
TEST(BrokenHandler, without_an_id_rule_counts_a_resend_twice) {
  Plan plan = memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      ONCE_TRY(append_effect(t, delivery.id));
      return applied();
    });
  });
  plan.options.id.reset();
  const Report report = run_twice(plan);
  ASSERT_NE(first(report, Kind::doubled), nullptr) << report.text();
}

TEST(BrokenHandler, that_depends_on_an_order_it_does_not_ask_for_is_found) {
  Plan plan = memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      const std::string list = ONCE_TRY(t.get("effects")).value_or("");
      const auto before = std::count(list.begin(), list.end(), '\n');
      ONCE_TRY(append_effect(t, delivery.id, "number " + std::to_string(before)));
      return applied();
    });
  });
  plan.options.order = Order::key;
  const Report report = reorder(plan);
  ASSERT_NE(first(report, Kind::changed), nullptr) << report.text();
}

// Newest first within a batch.
TEST(BrokenHandler, that_turns_the_order_of_a_batch_around_is_found) {
  Plan plan = memory_plan([] {
    return batch([](std::span<Work> work, KeyValueTransaction& t) -> Status {
      for (std::size_t i = work.size(); i > 0; --i)
        ONCE_TRY(append_effect(t, work[i - 1].delivery->id));
      return {};
    });
  });
  const Report report = run_twice(plan);
  ASSERT_NE(first(report, Kind::reordered), nullptr) << report.text();
}

TEST(BrokenHandler, that_writes_under_another_id_is_found) {
  const Report report = check(memory_plan([] {
    return each([](const Delivery&, KeyValueTransaction& t) -> Result<Outcome> {
      ONCE_TRY(append_effect(t, "always the same"));
      return applied();
    });
  }));
  ASSERT_NE(first(report, Kind::stray), nullptr) << report.text();
  EXPECT_EQ(first(report, Kind::stray)->id, "always the same");
}

TEST(BrokenHandler, that_stops_the_pipeline_is_found) {
  const Report report = check(memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      if (delivery.id == "m2") return fail(Remedy::stop, "config", "no disk");
      ONCE_TRY(append_effect(t, delivery.id));
      return applied();
    });
  }));
  ASSERT_NE(first(report, Kind::stopped), nullptr) << report.text();
  const std::string& text = first(report, Kind::stopped)->text;
  EXPECT_TRUE(text.starts_with("no disk; it came up at offset 2")) << text;
}

// --- The weaker promises are weaker, and the kit sees it.

Plan weaker_plan(Semantics semantics) {
  Plan plan = memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      ONCE_TRY(append_effect(t, delivery.id));
      return applied();
    });
  });
  plan.options.semantics = semantics;
  plan.resends = false;
  return plan;
}

TEST(WeakerSemantics, at_least_once_repeats_after_a_crash) {
  const Plan plan = weaker_plan(Semantics::at_least_once);
  EXPECT_TRUE(run_twice(plan).ok());
  const Report report = crash_at_every_step(plan);
  EXPECT_NE(first(report, Kind::doubled), nullptr) << report.text();
  EXPECT_EQ(first(report, Kind::lost), nullptr) << report.text();
}

TEST(WeakerSemantics, at_most_once_loses_in_a_crash) {
  const Plan plan = weaker_plan(Semantics::at_most_once);
  EXPECT_TRUE(run_twice(plan).ok());
  const Report report = crash_at_every_step(plan);
  EXPECT_NE(first(report, Kind::lost), nullptr) << report.text();
  EXPECT_EQ(first(report, Kind::doubled), nullptr) << report.text();
}

// --- The report.

Plan forgetful_plan() {
  return memory_plan([] {
    return each([](const Delivery& delivery, KeyValueTransaction& t) -> Result<Outcome> {
      if (!append_effect(t, delivery.id)) return applied();
      return applied();
    });
  });
}

TEST(Report, is_the_same_for_the_same_seed_and_another_for_another) {
  Plan plan = forgetful_plan();
  const Report report = random_failures(plan);
  EXPECT_EQ(report.findings, random_failures(plan).findings);
  plan.seed = 1000;
  EXPECT_NE(report.findings, random_failures(plan).findings);
}

TEST(Report, names_the_seed_that_shows_the_same_schedule_alone) {
  Plan plan = forgetful_plan();
  const Report report = random_failures(plan);
  ASSERT_FALSE(report.ok());
  plan.seed = report.findings[0].seed;
  plan.failures = 1;
  const Report again = random_failures(plan);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.findings[0], report.findings[0]);
}

TEST(Report, says_in_words_what_broke_and_how) {
  const std::string text = random_failures(forgetful_plan()).text();
  EXPECT_NE(text.find("lost: \"m"), std::string::npos) << text;
  EXPECT_NE(text.find("has no effect, not 1 effect"), std::string::npos) << text;
  EXPECT_NE(text.find("random_failures (seed "), std::string::npos) << text;
  EXPECT_NE(text.find("  1. the process starts; the position is 0"), std::string::npos) << text;
}

TEST(Report, ends_after_so_many_findings) {
  Plan plan = forgetful_plan();
  plan.findings_max = 2;
  EXPECT_EQ(random_failures(plan).findings.size(), 2u);
}

}  // namespace
}  // namespace once::testing
