// SPDX-License-Identifier: Apache-2.0
// A lane at its borders: other processes, wrong clocks, messages that are refused, poison that
// nobody is blamed for, partitions that are taken away at the wrong moment.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/witness.h"
#include "runtime/forgetter.h"
#include "runtime/lane_testing.h"
#include "runtime/lane_thread.h"

namespace once {
namespace {

using testing::apply_effect;
using testing::effects_of;
using testing::numbered;
using testing::ScriptSource;
using testing::write_effect;
using CommitFault = MemoryStore::CommitFault;

class LaneBorders : public testing::LaneFixture {
 protected:
  LaneBorders() { options_.retry.attempts_max = 1'000'000; }

  LaneParts parts() override {
    store_clock_.measured(clock_.now_ms());
    LaneParts all = LaneFixture::parts();
    all.store_clock = &store_clock_;
    return all;
  }
  // The whole partition through a new lane, at most `batch` messages at a time.
  void handle_all(std::size_t batch = 1000) {
    options_.batch_count_max = batch;
    Lane lane = make();
    own(lane);
    lane.push(source_.batch("p0"));
    drain(lane);
  }

  PartitionRecord record(const std::string& partition = "p0") {
    const ScopeRecord scope = store_.records()->describe("shop").value();
    for (const PartitionRecord& one : scope.partitions)
      if (one.partition == partition) return one;
    return {};
  }

  StoreClock store_clock_{clock_};
};

// --- progress

TEST_F(LaneBorders, every_commit_tells_how_far_the_births_have_come) {
  for (const std::int64_t born_ms : {5000, 3000, 7000, 6000})
    add("m" + std::to_string(born_ms), "b", born_ms);
  options_.batch_count_max = 2;
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  ASSERT_TRUE(lane.step());
  EXPECT_EQ(record().settled_ms, 5000);
  EXPECT_EQ(record().waiting_ms, 6000);
  EXPECT_EQ(record().position.witness.offset, 1);
  ASSERT_TRUE(lane.step());
  EXPECT_EQ(record().settled_ms, 7000);
  EXPECT_EQ(record().waiting_ms, -1);
  EXPECT_EQ(record().position.witness, witness_of(source_.batch("p0").deliveries[3]));
}

// The message is old, was delivered in time, and is retried while the rest of the world goes on.
TEST_F(LaneBorders, a_message_that_is_retried_does_not_become_too_old) {
  options_.retention_ms = 1000;
  bool works = false;
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.id == "old" && !works) return retry("not yet", 100);
        return apply_effect(delivery, transaction);
      });
  const std::int64_t now = clock_.now_ms();
  add("young", "b", now);
  add("old", "b", now - 100'000);
  add("next", "b", now);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  Forgetter forgetter(store_, clock_, options_, store_clock_);
  forgetter.own("p0");
  for (int i = 0; i < 50; ++i) {
    const auto step = lane.step();
    ASSERT_TRUE(step);
    clock_.step(step->wait_ms);
    ASSERT_TRUE(forgetter.step());
  }
  EXPECT_EQ(record().waiting_ms, now - 100'000);
  works = true;
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), (std::vector<std::string>{"young", "old", "next"}));
  EXPECT_EQ(counters_.too_old, 0u);
}

TEST_F(LaneBorders, a_message_that_waits_is_told_to_the_store_once) {
  handler_ = each([&](const Delivery&, KeyValueTransaction&) -> Result<Outcome> {
    return retry("not yet", 100);
  });
  fill(3);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  int commits = 0;
  store_.set_commit_fault([&] {
    ++commits;
    return CommitFault::none;
  });
  for (int i = 0; i < 50; ++i) clock_.step(lane.step().value().wait_ms);
  EXPECT_EQ(commits, 1);
  EXPECT_EQ(record().waiting_ms, 1000);
  EXPECT_EQ(record().position.offset, -1);
}

TEST_F(LaneBorders, a_drained_partition_has_come_as_far_as_the_others_once_all_of_it_is_settled) {
  bool works = false;
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (!works) return retry("not yet", 60'000);
        return apply_effect(delivery, transaction);
      });
  fill(2);
  Lane lane = make();
  own(lane);
  lane.push(source_.batch("p0"));
  lane.drained("p0", 5000);
  ASSERT_TRUE(lane.step());
  ASSERT_TRUE(lane.step());
  EXPECT_EQ(record().settled_ms, -1);
  clock_.step(60'000);
  works = true;
  drain(lane);
  EXPECT_EQ(record().settled_ms, 5000);
  EXPECT_EQ(record().drained_ms, clock_.now_ms());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(2));
}

TEST_F(LaneBorders, a_partition_that_gets_messages_again_is_not_drained) {
  handler_ = each([&](const Delivery&, KeyValueTransaction&) -> Result<Outcome> {
    return retry("not yet", 60'000);
  });
  fill(1);
  Lane lane = make();
  own(lane);
  lane.drained("p0", 5000);
  lane.push(source_.batch("p0"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(lane.step());
  EXPECT_EQ(record().settled_ms, -1);
}

// --- births in the future

TEST_F(LaneBorders, a_message_from_the_future_is_parked_and_moves_no_horizon) {
  const std::int64_t now = clock_.now_ms();
  add("m0", "b", now);
  add("2099", "b", 4'070'908'800'000);
  add("microseconds", "b", now * 1000);
  add("m1", "b", now + options_.ahead_ms_max);  // a little ahead is tolerated
  add("m2", "b", now);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"), numbered(3));
  EXPECT_EQ(counters_.ahead, 2u);
  EXPECT_EQ(counters_.parked, 2u);
  EXPECT_EQ(record().settled_ms, now);
  const auto parked = parked_records();
  ASSERT_EQ(parked.size(), 2u);
  EXPECT_EQ(parked[0].message.id, "2099");
  EXPECT_EQ(parked[1].message.id, "microseconds");
  EXPECT_NE(parked[1].reason.find("microseconds"), std::string::npos) << parked[1].reason;
}

// The producer is repaired: the same id with the right birth is new.
TEST_F(LaneBorders, an_id_that_came_from_the_future_is_free_for_the_corrected_message) {
  add("m0", "b", 4'070'908'800'000);
  add("m0", "b", clock_.now_ms());
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
}

TEST_F(LaneBorders, where_nothing_is_forgotten_births_do_not_matter) {
  options_.retention_ms = -1;
  add("m0", "b", 4'070'908'800'000);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
  EXPECT_EQ(record().settled_ms, -1);  // but they are not believed either
}

TEST_F(LaneBorders, the_future_is_judged_by_the_stores_clock_and_not_by_ours) {
  add("m0", "b", clock_.now_ms());
  Lane lane = make();
  own(lane);
  clock_.jump(-1000 * 3'600'000LL);
  lane.push(source_.batch("p0"));
  drain(lane);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
}

// --- outcomes do not depend on the size of a batch

TEST_F(LaneBorders, the_copy_of_a_message_without_effect_gets_its_chance_in_every_batch_size) {
  for (const std::size_t batch : {1UL, 2UL, 3UL, 1000UL}) {
    MemoryStore store(clock_);
    int calls = 0;
    const Handler handler =
        each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          if (delivery.id == "m0" && ++calls == 1) return no_effect();
          return apply_effect(delivery, transaction);
        });
    ScriptSource source;
    for (const char* id : {"m0", "m0", "m1"})
      source.add("p0", {.id = id, .key = "", .body = "b", .headers = {}, .timestamp_ms = 1000});
    options_.batch_count_max = batch;
    Counters counters;
    // Handlers run again after a rollback: what they remember must not, so it is undone with it.
    Lane lane({.store = store,
               .clock = clock_,
               .handler = handler,
               .options = options_,
               .counters = counters});
    lane.own("p0", store.take("shop", "p0").value());
    lane.push(source.batch("p0"));
    for (int steps = 0; !lane.idle() && steps < 100; ++steps) {
      const std::uint64_t rolled_back = counters.rolled_back;
      ASSERT_TRUE(lane.step());
      if (counters.rolled_back != rolled_back) calls = 0;
    }
    EXPECT_EQ(effects_of(store, "p0"), numbered(2)) << "batch " << batch;
    EXPECT_EQ(counters.no_effect, 1u) << "batch " << batch;
    EXPECT_EQ(counters.duplicates, 0u) << "batch " << batch;
  }
}

// --- what is refused leaves nothing behind

TEST_F(LaneBorders, a_message_that_is_rejected_after_it_wrote_leaves_nothing_behind) {
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        ONCE_TRY(write_effect(delivery, transaction));
        ONCE_TRY(transaction.enqueue("next", {.id = std::string(delivery.id)}));
        if (delivery.id == "m3") return rejected("out of stock");
        if (delivery.id == "m5") return no_effect();
        return applied();
      });
  fill(8);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"),
            (std::vector<std::string>{"m0", "m1", "m2", "m4", "m6", "m7"}));
  EXPECT_EQ(store_.records()->find("shop", "m3").value()->outcome, rejected("out of stock"));
  EXPECT_FALSE(store_.records()->find("shop", "m5").value().has_value());
  EXPECT_EQ(store_.outbox()->pending("next", 100).value().size(), 6u);
  EXPECT_EQ(counters_.rejected, 1u);
}

TEST_F(LaneBorders, a_message_that_is_rejected_before_it_wrote_costs_no_rollback) {
  handler_ =
      each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
        if (delivery.offset % 2 == 1) return rejected("out of stock");
        return apply_effect(delivery, transaction);
      });
  fill(100);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0").size(), 50u);
  EXPECT_EQ(counters_.rolled_back, 0u);
}

TEST_F(LaneBorders, a_batch_handler_that_writes_for_all_and_rejects_some_keeps_only_the_others) {
  int calls = 0;
  handler_ = batch([&](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
    ++calls;
    for (Work& one : work) {
      ONCE_TRY(write_effect(*one.delivery, transaction));
      if (one.delivery->offset % 3 == 1) one.outcome = rejected("no");
    }
    return {};
  });
  fill(9);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"),
            (std::vector<std::string>{"m0", "m2", "m3", "m5", "m6", "m8"}));
  EXPECT_EQ(counters_.rejected, 3u);
  EXPECT_EQ(calls, 2);
}

TEST_F(LaneBorders, a_batch_handler_that_says_for_whom_it_writes_is_not_run_twice) {
  handler_ = batch([&](std::span<Work> work, KeyValueTransaction& transaction) -> Status {
    for (Work& one : work) {
      transaction.on_behalf_of(one.message);
      if (one.delivery->offset % 3 == 1)
        one.outcome = rejected("no");
      else
        ONCE_TRY(write_effect(*one.delivery, transaction));
    }
    return {};
  });
  fill(9);
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0").size(), 6u);
  EXPECT_EQ(counters_.rolled_back, 0u);
}

// --- poison without a culprit

TEST_F(LaneBorders, a_commit_that_is_refused_because_of_one_message_parks_this_one) {
  for (const std::size_t poison : {0UL, 37UL, 99UL}) {
    const std::string id = "m" + std::to_string(poison);
    MemoryStore store(clock_);
    ScriptSource source;
    for (std::size_t i = 0; i < 100; ++i)
      source.add("p0", {.id = "m" + std::to_string(i),
                        .key = "",
                        .body = "b",
                        .headers = {},
                        .timestamp_ms = 1000});
    bool poisoned = false;
    const Handler handler =
        each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
          if (delivery.id == id) poisoned = true;
          return apply_effect(delivery, transaction);
        });
    store.set_commit_fault([&] {
      return std::exchange(poisoned, false) ? CommitFault::constraint : CommitFault::none;
    });
    Counters counters;
    options_.batch_count_max = 1000;
    Lane lane({.store = store,
               .clock = clock_,
               .handler = handler,
               .options = options_,
               .counters = counters});
    lane.own("p0", store.take("shop", "p0").value());
    lane.push(source.batch("p0"));
    for (int steps = 0; !lane.idle() && steps < 1000; ++steps) ASSERT_TRUE(lane.step());
    auto expected = numbered(100);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(poison));
    EXPECT_EQ(effects_of(store, "p0"), expected);
    const auto parked = store.records()->parked("shop", 0, 10).value();
    ASSERT_EQ(parked.size(), 1u);
    EXPECT_EQ(parked[0].message.id, id);
    EXPECT_LT(counters.rolled_back, 60u);
  }
}

// A column of the store that is shorter than some ids.
class NarrowTransaction final : public WatchedTransaction<KeyValueTransaction> {
 public:
  explicit NarrowTransaction(std::unique_ptr<Transaction> inner)
      : WatchedTransaction(*inner, writes_), inner_(std::move(inner)) {}

  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override {
    for (const Entry& entry : entries)
      if (entry.id.size() > 100) return fail(too_long());
    return WatchedTransaction::admit(entries);
  }
  Status settle(const Delivery& delivery, const Outcome& outcome) override {
    if (delivery.id.size() > 100) return fail(too_long());
    return WatchedTransaction::settle(delivery, outcome);
  }
  Result<std::optional<std::string>> get(std::string_view key) override {
    return inner().key_value()->get(key);
  }
  Status put(std::string_view key, std::string_view value) override {
    return inner().key_value()->put(key, value);
  }
  Status erase(std::string_view key) override { return inner().key_value()->erase(key); }

 private:
  static Error too_long() { return {Remedy::park, "constraint", "data too long", std::nullopt}; }

  Statements run_;
  Writes writes_{run_};
  std::unique_ptr<Transaction> inner_;
};

class NarrowStore final : public Store {
 public:
  explicit NarrowStore(Store& store) : store_(store) {}

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    return std::make_unique<NarrowTransaction>(ONCE_TRY(store_.begin(scope)));
  }
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view identity) override {
    return store_.take(scope, partition, identity);
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return store_.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override {
    return store_.forget(scope, horizon_ms, rows_max);
  }

 private:
  Store& store_;
};

TEST_F(LaneBorders, an_id_that_the_store_refuses_is_parked_and_the_partition_goes_on) {
  fill(5);
  add(std::string(1000, 'x'), "too long", 1005);
  fill(3, "p0", "n");
  NarrowStore narrow(store_);
  Lane lane({.store = narrow,
             .clock = clock_,
             .handler = handler_,
             .options = options_,
             .counters = counters_});
  own(lane);
  lane.push(source_.batch("p0"));
  drain(lane);
  auto expected = numbered(5);
  for (const std::string& id : numbered(3, "n")) expected.push_back(id);
  EXPECT_EQ(effects_of(store_, "p0"), expected);
  ASSERT_EQ(parked_records().size(), 1u);
  EXPECT_EQ(parked_records()[0].message.body, "too long");
  EXPECT_EQ(parked_records()[0].reason, "data too long");
}

// --- partitions that are taken away while a commit is in doubt

TEST_F(LaneBorders, a_partition_that_is_revoked_in_doubt_leaves_no_batch_in_the_queue) {
  fill(10, "p0", "a");
  fill(10, "p1", "b");
  Lane lane = make();
  own(lane, "p0");
  own(lane, "p1");
  lane.push(source_.batch("p0"));
  lane.push(source_.batch("p1"));
  bool first = true;
  store_.set_commit_fault(
      [&] { return std::exchange(first, false) ? CommitFault::lost_after : CommitFault::none; });
  ASSERT_TRUE(lane.step());
  lane.disown("p0");
  ASSERT_TRUE(store_.take("shop", "p0"));  // another process has it by now
  drain(lane);
  EXPECT_EQ(lane.batches_queued(), 0u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(10, "a"));
  EXPECT_EQ(effects_of(store_, "p1"), numbered(10, "b"));
}

TEST_F(LaneBorders, a_partition_that_comes_back_while_a_commit_is_in_doubt_is_ours) {
  for (const CommitFault fault :
       {CommitFault::lost_before, CommitFault::lost_after, CommitFault::lost_late}) {
    MemoryStore store(clock_);
    ScriptSource source;
    for (int i = 0; i < 20; ++i)
      source.add("p0", {.id = "m" + std::to_string(i),
                        .key = "",
                        .body = "b",
                        .headers = {},
                        .timestamp_ms = 1000});
    Counters counters;
    options_.batch_count_max = 1000;
    Lane lane({.store = store,
               .clock = clock_,
               .handler = handler_,
               .options = options_,
               .counters = counters});
    lane.own("p0", store.take("shop", "p0").value());
    lane.push(source.batch("p0", 0, 10));
    bool first = true;
    store.set_commit_fault([&] { return std::exchange(first, false) ? fault : CommitFault::none; });
    ASSERT_TRUE(lane.step());
    lane.disown("p0");
    const Position now = store.take("shop", "p0").value();
    lane.own("p0", now);
    lane.push(source.batch("p0", static_cast<std::size_t>(std::max<std::int64_t>(0, now.offset))));
    for (int steps = 0; !lane.idle() && steps < 100; ++steps) {
      const auto step = lane.step();
      ASSERT_TRUE(step) << step.error().text;
      clock_.step(step->wait_ms);
    }
    EXPECT_EQ(effects_of(store, "p0"), numbered(20));
  }
}

TEST_F(LaneBorders, a_lane_has_room_again_after_a_partition_was_revoked_in_doubt) {
  fill(10);
  std::atomic<LaneThread*> lane = nullptr;
  bool first = true;
  store_.set_commit_fault([&] {
    if (!std::exchange(first, false)) return CommitFault::none;
    while (lane == nullptr) std::this_thread::yield();
    (*lane).disown("p0");
    return CommitFault::lost_before;
  });
  LaneThread thread(parts(), LaneThread::Identify::by_poller, [] {});
  thread.own("p0", store_.take("shop", "p0").value());
  thread.push(source_.batch("p0"));
  EXPECT_EQ(thread.queued(), 1u);
  lane = &thread;
  for (int i = 0; i < 2000 && thread.queued() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(thread.queued(), 0u);
  EXPECT_FALSE(thread.take_news().failure);
}

// --- content

TEST_F(LaneBorders, H13_a_resend_that_is_only_written_differently_is_a_duplicate) {
  add("m0", R"({"amount":100,"to":"a"})");
  add("m0", R"({ "to" : "a", "amount" : 100.0 })");
  add("m0", R"({"amount":101,"to":"a"})");
  handle_all();
  EXPECT_EQ(effects_of(store_, "p0"), numbered(1));
  EXPECT_EQ(counters_.duplicates, 1u);
  EXPECT_EQ(counters_.mismatched, 1u);
  ASSERT_EQ(parked_records().size(), 1u);
  const std::string reason = parked_records()[0].reason;
  for (const char* part : {"offset 0", "partition \"p0\"", "body as JSON", "content = \"json\""})
    EXPECT_NE(reason.find(part), std::string::npos) << part << " is not in: " << reason;
}

TEST_F(LaneBorders, what_is_compared_is_a_choice) {
  add("m0", R"({"amount":100,"attempt":1})");
  add("m0", R"({"amount":100,"attempt":2})");
  options_.content = ContentRule::parse("fields:/amount").value();
  handle_all();
  EXPECT_EQ(counters_.duplicates, 1u);
  EXPECT_EQ(counters_.mismatched, 0u);
}

}  // namespace
}  // namespace once
