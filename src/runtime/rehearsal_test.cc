// SPDX-License-Identifier: Apache-2.0
#include "runtime/rehearsal.h"

#include <gtest/gtest.h>
#include <once/effect.h>

#include <string>
#include <vector>

#include "testing/effects.h"
#include "testing/script_source.h"

namespace once {
namespace {

using testing::effects_of;
using testing::numbered;
using testing::ScriptSource;
using testing::write_effect;

class RehearsalTest : public ::testing::Test {
 protected:
  RehearsalTest() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.stop_at_end = true;
  }

  void add(const std::string& id, const std::string& body = "b") {
    source_.add("p0", {.id = id, .key = "k", .body = body, .timestamp_ms = 1000});
  }
  static Result<Outcome> apply_effect(const Delivery& delivery, KeyValueTransaction& store) {
    ONCE_TRY(write_effect(delivery, store));
    ONCE_TRY(store.enqueue("paid", {.id = std::string(delivery.id), .key = "k"}));
    return applied("paid");
  }
  std::vector<Rehearsed> rehearsed(const Handler& handler, std::size_t count = 10) {
    source_.announce("p0");
    auto seen = rehearse(source_, store_, handler, options_, count);
    EXPECT_TRUE(seen) << seen.error().text;
    return seen ? *seen : std::vector<Rehearsed>();
  }
  void run(const Handler& handler) {
    source_.announce("p0");
    auto pipeline = Pipeline::make(source_, store_, handler, options_).value();
    ASSERT_TRUE(pipeline->run());
  }
  // Nothing that a rehearsal could leave behind.
  void expect_untouched(const MemoryState& before) {
    const MemoryState now = store_.snapshot();
    EXPECT_EQ(now.values, before.values);
    EXPECT_EQ(now.outbox.size(), before.outbox.size());
    ASSERT_EQ(now.scopes.size(), before.scopes.size());
    for (const auto& [name, scope] : before.scopes) {
      const auto& same = now.scopes.at(name);
      EXPECT_EQ(same.ledger.size(), scope.ledger.size());
      EXPECT_EQ(same.parked.size(), scope.parked.size());
      EXPECT_EQ(same.operations.size(), scope.operations.size());
      for (const auto& [partition, record] : scope.partitions)
        EXPECT_EQ(same.partitions.at(partition).position, record.position);
    }
  }

  MemoryStore store_{system_clock()};
  ScriptSource source_;
  PipelineOptions options_;
};

TEST_F(RehearsalTest, shows_what_messages_would_do_and_leaves_nothing_behind) {
  for (const char* id : {"m0", "m1", "m0"}) add(id);
  add("m1", "other content");
  add("");
  const MemoryState before = store_.snapshot();
  const auto seen = rehearsed(each(apply_effect));
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0].id, "m0");
  EXPECT_EQ(seen[0].verdict, Verdict::Kind::fresh);
  EXPECT_EQ(seen[0].outcome, applied("paid"));
  ASSERT_EQ(seen[0].emits.size(), 1u);
  EXPECT_EQ(seen[0].emits[0].destination, "paid");
  EXPECT_EQ(seen[0].emits[0].message.id, "m0");
  ASSERT_EQ(seen[0].writes.size(), 1u);
  EXPECT_EQ(seen[0].writes[0].statement, "put effects/p0");
  EXPECT_EQ(seen[2].verdict, Verdict::Kind::duplicate);
  EXPECT_EQ(seen[2].outcome, applied("paid"));
  EXPECT_TRUE(seen[2].emits.empty());
  EXPECT_EQ(seen[3].verdict, Verdict::Kind::mismatch);
  EXPECT_EQ(seen[3].outcome.kind, Outcome::Kind::parked);
  EXPECT_EQ(seen[4].id, "");
  EXPECT_FALSE(seen[4].verdict);
  EXPECT_EQ(seen[4].outcome.kind, Outcome::Kind::parked);
  expect_untouched(before);
  // And a run afterwards does just that.
  run(each(apply_effect));
  EXPECT_EQ(effects_of(store_, "p0"), numbered(2));
}

// A message that is refused after it wrote something takes nothing from those before it.
TEST_F(RehearsalTest, later_messages_see_what_earlier_ones_wrote_also_behind_a_refusal) {
  for (const auto& id : numbered(6)) add(id);
  const auto seen =
      rehearsed(each([](const Delivery& delivery, KeyValueTransaction& store) -> Result<Outcome> {
        ONCE_TRY(write_effect(delivery, store));
        const std::string list = ONCE_TRY(store.get("effects/p0")).value_or("");
        if (delivery.id == "m2") return rejected("sold out");
        if (delivery.id == "m3") return retry("the bank is busy");
        return applied(list);
      }));
  ASSERT_EQ(seen.size(), 6u);
  EXPECT_EQ(seen[1].outcome, applied("m0\nm1\n"));
  EXPECT_EQ(seen[2].outcome, rejected("sold out"));
  EXPECT_TRUE(seen[2].writes.empty()) << "what it wrote was taken back";
  EXPECT_EQ(seen[3].outcome, parked("gave up after 5 attempts: the bank is busy"));
  EXPECT_EQ(seen[5].outcome, applied("m0\nm1\nm4\nm5\n"));
}

TEST_F(RehearsalTest, begins_at_the_position_and_ends_after_as_many_as_were_asked_for) {
  for (const auto& id : numbered(10)) add(id);
  run(each(apply_effect));
  for (int i = 10; i < 20; ++i) add("m" + std::to_string(i));
  const MemoryState before = store_.snapshot();
  const auto seen = rehearsed(each(apply_effect), 3);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].offset, 10);
  EXPECT_EQ(seen[2].id, "m12");
  expect_untouched(before);
  EXPECT_EQ(source_.acked("p0"), 9);
}

TEST_F(RehearsalTest, a_pipeline_beside_it_keeps_its_fence) {
  for (const auto& id : numbered(10)) add(id);
  const Position owner = store_.take("shop", "p0").value();
  ASSERT_EQ(rehearsed(each(apply_effect)).size(), 10u);
  EXPECT_EQ(store_.position("shop", "p0").value().fence, owner.fence);
  auto transaction = store_.begin("shop").value();
  ASSERT_TRUE(transaction->advance("p0", owner, 1));
  EXPECT_TRUE(transaction->commit());
}

TEST_F(RehearsalTest, the_weaker_semantics_can_be_rehearsed) {
  options_.semantics = Semantics::at_least_once;
  options_.id.reset();
  for (const auto& id : numbered(3)) add(id, id);
  const auto seen = rehearsed(each(apply_effect));
  ASSERT_EQ(seen.size(), 3u);
  for (const Rehearsed& one : seen) EXPECT_EQ(one.outcome, applied("paid"));
  EXPECT_EQ(seen[2].emits.size(), 1u);
}

// As in a run: those of its key wait behind it, others do not, and its attempts are counted.
TEST_F(RehearsalTest, shows_which_messages_would_wait_in_the_store) {
  options_.order = Order::key;
  options_.park_to = "dead";
  for (const char* id : {"m0", "m1", "m2"}) add(id);
  source_.add("p0", {.id = "m3", .key = "other", .body = "b", .timestamp_ms = 1000});
  const MemoryState before = store_.snapshot();
  const auto seen = rehearsed(each([](const Delivery& delivery, Transaction&) -> Result<Outcome> {
    if (delivery.id == "m1") return later("the account is not there yet", 60'000, 3);
    if (delivery.id == "m3") return later("never", 1000, 1);
    return applied();
  }));
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].outcome, applied());
  EXPECT_EQ(seen[1].outcome, later("the account is not there yet", 60'000, 3));
  EXPECT_EQ(seen[2].outcome.kind, Outcome::Kind::later);
  EXPECT_EQ(seen[2].outcome.detail, "an earlier message of its key waits");
  EXPECT_EQ(seen[3].outcome, parked("gave up after 1 attempts: never"));
  ASSERT_EQ(seen[3].emits.size(), 1u);
  EXPECT_EQ(seen[3].emits[0].destination, "dead");
  expect_untouched(before);
  EXPECT_EQ(store_.deferrals()->deferred("shop", 0, 10)->size(), 0u);
}

TEST_F(RehearsalTest, an_effect_outside_the_store_is_refused) {
  const Handler outside =
      handler_of(Keyed{[](const Delivery&, Ticket&) -> Result<Outcome> { return applied(); }});
  EXPECT_EQ(rehearse(source_, store_, outside, options_, 1).error().tag, "config");
}

}  // namespace
}  // namespace once
