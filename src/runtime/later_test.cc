// SPDX-License-Identifier: Apache-2.0
// Messages that are put off until later: they wait in the store and hold up no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/due_feed.h"
#include "runtime/lane.h"
#include "testing/effects.h"
#include "testing/script_source.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::effects_of;
using testing::ScriptSource;
using testing::SimClock;
using testing::write_effect;
using CommitFault = MemoryStore::CommitFault;
using Ids = std::vector<std::string>;

// A pipeline without threads. The handler puts off what is in `not_yet_`, for a minute.
class LaterTest : public ::testing::Test {
 protected:
  LaterTest() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.retry.backoff_ms_min = 1;
  }

  void say(const std::string& id, const std::string& key = "k", const std::string& body = "b") {
    source_.add("p0", {.id = id, .key = key, .body = body, .headers = {}, .timestamp_ms = 1000});
  }
  void start() {
    feed_ = std::make_unique<DueFeed>(store_, clock_, options_, may_wait_);
    lane_ = std::make_unique<Lane>(LaneParts{.store = store_,
                                             .clock = clock_,
                                             .handler = handler_,
                                             .options = options_,
                                             .counters = counters_,
                                             .positions = options_.order == Order::partition,
                                             .may_wait = &may_wait_});
    lane_->own("p0", store_.take("shop", "p0").value());
  }
  Result<Outcome> handle(const Delivery& delivery, KeyValueTransaction& transaction) {
    ++handled_[std::string(delivery.id)];
    ONCE_TRY(write_effect(delivery, transaction));
    if (std::find(not_yet_.begin(), not_yet_.end(), delivery.id) == not_yet_.end())
      return applied();
    return later("the rate is not there yet", 60'000, attempts_max_);
  }
  // What was said since the last time, and all that is due.
  void run() {
    lane_->push(source_.batch("p0", taken_));
    taken_ = source_.batch("p0").deliveries.size();
    drain();
    while (auto due = poll()) {
      lane_->push(std::move(*due));
      drain();
    }
  }
  std::optional<Batch> poll() {
    auto due = feed_->poll(true);
    for (int failures = 0; !due && failures < 10; ++failures) due = feed_->poll(true);
    return std::move(due).value();
  }
  void drain() {
    for (int steps = 0; !lane_->idle(); ++steps) {
      ASSERT_LT(steps, 10'000) << "the lane does not come to an end";
      const auto step = lane_->step();
      ASSERT_TRUE(step) << step.error().text;
      if (step->wait_ms > 0) clock_.step(step->wait_ms);
    }
  }
  void pass(std::int64_t ms) { clock_.step(ms); }

  Ids effects() { return effects_of(storage_, "p0"); }
  Ids waiting() {
    Ids ids;
    const auto records = store_.deferrals()->deferred("shop", 0, 1000).value();
    for (const DeferredRecord& record : records) ids.push_back(record.message.id);
    return ids;
  }
  std::vector<ParkedRecord> parked_records() {
    return store_.records()->parked("shop", 0, 1000).value();
  }

  SimClock clock_;
  MemoryStore storage_{clock_};
  Store& store_ = storage_;
  ScriptSource source_;
  PipelineOptions options_;
  Counters counters_;
  std::atomic<bool> may_wait_{false};
  Ids not_yet_;
  std::uint32_t attempts_max_ = 12;
  std::map<std::string, int> handled_;
  Handler handler_ = each([this](const Delivery& delivery, KeyValueTransaction& transaction) {
    return handle(delivery, transaction);
  });
  std::unique_ptr<DueFeed> feed_;
  std::unique_ptr<Lane> lane_;
  std::size_t taken_ = 0;
};

TEST_F(LaterTest, others_go_on_and_what_was_put_off_is_handled_once_when_it_is_due) {
  not_yet_ = {"b"};
  for (const char* id : {"a", "b", "c"}) say(id);
  start();
  run();
  EXPECT_EQ(effects(), (Ids{"a", "c"}));
  EXPECT_EQ(waiting(), (Ids{"b"}));
  EXPECT_EQ(store_.position("shop", "p0").value().offset, 3);
  not_yet_.clear();
  pass(59'999);
  run();
  EXPECT_EQ(effects(), (Ids{"a", "c"}));
  pass(1);
  run();
  run();
  EXPECT_EQ(effects(), (Ids{"a", "c", "b"}));
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(counters_.applied, 3u);
  EXPECT_EQ(counters_.deferred, 1u);
  EXPECT_EQ(counters_.delivered, 3u);
  EXPECT_EQ(counters_.duplicates, 0u);
  EXPECT_EQ(store_.records()->find("shop", "b").value()->outcome, applied());
}

TEST_F(LaterTest, after_its_last_attempt_it_is_parked_and_the_dead_letter_says_so) {
  options_.park_to = "dead";
  attempts_max_ = 3;
  not_yet_ = {"b"};
  say("b");
  start();
  for (int i = 0; i < 5; ++i) {
    run();
    pass(60'000);
  }
  EXPECT_EQ(handled_["b"], 3);
  ASSERT_EQ(parked_records().size(), 1u);
  EXPECT_EQ(parked_records()[0].reason, "gave up after 3 attempts: the rate is not there yet");
  EXPECT_EQ(parked_records()[0].attempts, 3u);
  EXPECT_EQ(parked_records()[0].offset, 0);
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(store_.outbox()->pending("dead", 10).value().size(), 1u);
  EXPECT_EQ(store_.records()->find("shop", "b").value()->outcome.kind, Outcome::Kind::parked);
}

TEST_F(LaterTest, while_it_waits_its_copy_is_a_duplicate_and_other_content_a_mismatch) {
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  say("b");
  say("b", "k", "other");
  run();
  EXPECT_EQ(counters_.duplicates, 1u);
  EXPECT_EQ(counters_.mismatched, 1u);
  EXPECT_EQ(handled_["b"], 1);
  not_yet_.clear();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"b"}));
  EXPECT_EQ(parked_records().size(), 1u);
}

TEST_F(LaterTest, ordered_by_key_messages_wait_behind_one_of_their_key) {
  options_.order = Order::key;
  not_yet_ = {"a1"};
  for (const char* id : {"a1", "a2"}) say(id, "a");
  say("b1", "b");
  start();
  run();
  say("a3", "a");  // in another batch
  run();
  EXPECT_EQ(effects(), (Ids{"b1"}));
  EXPECT_EQ(waiting(), (Ids{"a1", "a2", "a3"}));
  pass(60'000);
  run();  // the first of them is put off again
  EXPECT_EQ(effects(), (Ids{"b1"}));
  EXPECT_EQ(handled_["a1"], 2);
  EXPECT_EQ(handled_["a2"] + handled_["a3"], 0);
  not_yet_.clear();
  say("a4", "a");
  run();
  EXPECT_EQ(effects(), (Ids{"b1"}));
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"b1", "a1", "a2", "a3", "a4"}));
  EXPECT_TRUE(waiting().empty());
}

TEST_F(LaterTest, the_next_owner_keeps_the_order_of_a_key) {
  options_.order = Order::key;
  not_yet_ = {"a1"};
  say("a1", "a");
  start();
  run();
  may_wait_ = false;  // another process
  start();
  ASSERT_TRUE(feed_->look());
  say("a2", "a");
  run();
  EXPECT_TRUE(effects().empty());
  not_yet_.clear();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"a1", "a2"}));
}

// The earlier owner is slow: it puts a message off after the next one has looked for those that
// wait, and both were delivered it.
TEST_F(LaterTest, what_the_earlier_owner_puts_off_meanwhile_holds_up_its_key_too) {
  options_.order = Order::key;
  not_yet_ = {"a1"};
  for (const char* id : {"a1", "a2", "a3"}) say(id, "a");
  say("b1", "b");
  start();
  lane_->push(source_.batch("p0"));
  drain();  // the earlier owner handles all of them ...
  ASSERT_EQ(waiting(), (Ids{"a1", "a2", "a3"}));
  for (const char* id : {"a2", "a3"}) {  // ... or only the first
    const auto records = store_.deferrals()->deferred("shop", 0, 10).value();
    for (const DeferredRecord& record : records)
      if (record.message.id == id) {
        ASSERT_TRUE(store_.deferrals()->abandon("shop", std::span(&record.number, 1), "test"));
      }
    ASSERT_TRUE(store_.repairs()->force("shop", id, "test"));
  }
  may_wait_ = false;
  start();
  run();
  EXPECT_EQ(effects(), (Ids{"b1"}));
  EXPECT_EQ(waiting(), (Ids{"a1", "a2", "a3"}));
  not_yet_.clear();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"b1", "a1", "a2", "a3"}));
}

TEST_F(LaterTest, ordered_by_partition_it_gives_up_its_place) {
  not_yet_ = {"a1"};
  for (const char* id : {"a1", "a2"}) say(id, "a");
  start();
  run();
  not_yet_.clear();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"a2", "a1"}));
}

TEST_F(LaterTest, two_processes_that_handle_it_give_it_one_effect) {
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  not_yet_.clear();
  pass(60'000);
  auto ours = poll();
  ASSERT_TRUE(ours);
  Lane other({.store = store_,
              .clock = clock_,
              .handler = handler_,
              .options = options_,
              .counters = counters_});
  other.push(*ours);
  lane_->push(std::move(*ours));
  while (!other.idle()) ASSERT_TRUE(other.step());
  drain();
  EXPECT_EQ(effects(), (Ids{"b"}));
  EXPECT_EQ(counters_.applied, 1u);
}

TEST_F(LaterTest, commits_that_fail_or_are_lost_neither_lose_nor_double_it) {
  for (const CommitFault fault : {CommitFault::refused, CommitFault::lost_before,
                                  CommitFault::lost_after, CommitFault::lost_late}) {
    const std::string id = "m" + std::to_string(static_cast<int>(fault));
    not_yet_ = {id};
    say(id);
    start();
    bool done = false;
    storage_.set_commit_fault(
        [&] { return std::exchange(done, true) ? CommitFault::none : fault; });
    run();
    EXPECT_EQ(waiting(), (Ids{id}));
    not_yet_.clear();
    pass(60'000);
    done = false;
    run();
    storage_.set_commit_fault({});
    run();
    EXPECT_TRUE(waiting().empty());
  }
  EXPECT_EQ(effects().size(), 4u);
  EXPECT_EQ(counters_.parked, 0u);
}

TEST_F(LaterTest, its_id_is_not_forgotten_while_it_waits) {
  not_yet_ = {"b"};
  for (const char* id : {"a", "b"}) say(id);
  start();
  run();
  ASSERT_TRUE(store_.forget("shop", 2000, 100));
  EXPECT_FALSE(store_.records()->find("shop", "a").value());
  say("b");
  run();
  EXPECT_EQ(counters_.duplicates, 1u);
  not_yet_.clear();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"a", "b"}));
  EXPECT_EQ(counters_.too_old, 0u);
}

TEST_F(LaterTest, what_the_store_refuses_when_it_is_due_is_parked) {
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  not_yet_.clear();
  pass(60'000);
  auto due = poll();
  bool done = false;
  storage_.set_commit_fault(
      [&] { return std::exchange(done, true) ? CommitFault::none : CommitFault::constraint; });
  lane_->push(std::move(*due));
  drain();
  storage_.set_commit_fault({});
  EXPECT_EQ(parked_records().size(), 1u);
  EXPECT_TRUE(waiting().empty());
  EXPECT_TRUE(effects().empty());
}

TEST_F(LaterTest, an_id_that_was_freed_and_had_its_effect_does_not_wait_any_longer) {
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  ASSERT_TRUE(store_.repairs()->force("shop", "b", "test"));
  not_yet_.clear();
  say("b");
  run();
  pass(60'000);
  run();
  EXPECT_EQ(effects(), (Ids{"b"}));
  EXPECT_TRUE(waiting().empty());
}

TEST_F(LaterTest, without_an_id_rule_it_is_refused_with_the_way_out) {
  options_.id.reset();
  not_yet_ = {""};
  say("");
  start();
  lane_->push(source_.batch("p0"));
  Result<Lane::Step> step = lane_->step();
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().tag, "config");
  EXPECT_NE(step.error().text.find("set an id rule"), std::string::npos) << step.error().text;
}

// --- a parked message that comes back from the dead-letter topic

TEST_F(LaterTest, a_parked_message_sent_again_with_its_headers_is_handled) {
  options_.park_to = "dead";
  attempts_max_ = 1;
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  ASSERT_EQ(parked_records().size(), 1u);
  say("b");  // a plain copy is a duplicate of what is parked
  run();
  EXPECT_EQ(counters_.duplicates, 1u);
  not_yet_.clear();
  const Message copy = store_.outbox()->pending("dead", 1).value().at(0).message;
  source_.add("p0", copy);
  source_.add("p0", copy);
  run();
  EXPECT_EQ(effects(), (Ids{"b"}));
  EXPECT_EQ(counters_.duplicates, 2u);
  EXPECT_TRUE(parked_records().empty());
}

TEST_F(LaterTest, a_copy_of_another_scope_frees_nothing) {
  options_.park_to = "dead";
  attempts_max_ = 1;
  not_yet_ = {"b"};
  say("b");
  start();
  run();
  Message copy = store_.outbox()->pending("dead", 1).value().at(0).message;
  for (Header& header : copy.headers)
    if (header.name == "once-parked-scope") header.value = "another";
  source_.add("p0", copy);
  run();
  EXPECT_EQ(counters_.duplicates, 1u);
  EXPECT_EQ(parked_records().size(), 1u);
}

// --- with threads

class LaterPipelineTest : public ::testing::Test {
 protected:
  LaterPipelineTest() {
    options_.scope = "shop";
    options_.id = IdRule{};
    options_.batch_wait_ms = 1;
    for (int i = 0; i < 200; ++i)
      source_.add("p0", {.id = std::to_string(i),
                         .key = "k" + std::to_string(i % 7),
                         .body = "b",
                         .headers = {},
                         .timestamp_ms = 1000});
    source_.announce("p0");
  }

  MemoryStore storage_{system_clock()};
  Store& store_ = storage_;
  ScriptSource source_;
  PipelineOptions options_;
};

TEST_F(LaterPipelineTest, ordered_by_key_each_key_keeps_its_order_and_nothing_is_lost) {
  options_.order = Order::key;
  options_.lanes = 3;
  std::mutex mutex;
  std::map<std::string, int> tries;
  const auto handle = [&](const Delivery& delivery,
                          KeyValueTransaction& transaction) -> Result<Outcome> {
    {
      const std::lock_guard lock(mutex);
      if (++tries[std::string(delivery.id)] == 1 && std::stoi(std::string(delivery.id)) % 10 == 0)
        return later("not at once", 30);
    }
    ONCE_TRY(write_effect(delivery, transaction));
    return applied();
  };
  auto pipeline = Pipeline::make(source_, store_, each(handle), options_);
  ASSERT_TRUE(pipeline) << pipeline.error().text;
  std::thread running([&] { EXPECT_TRUE((*pipeline)->run()); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while ((*pipeline)->statistics().applied < 200 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  (*pipeline)->stop();
  running.join();
  std::map<int, int> last;  // by key
  const auto effects = effects_of(storage_, "p0");
  EXPECT_EQ(effects.size(), 200u);
  for (const std::string& id : effects) {
    const int number = std::stoi(id);
    const auto [at, fresh] = last.try_emplace(number % 7, number);
    if (!fresh) {
      EXPECT_LT(std::exchange(at->second, number), number);
    }
  }
  EXPECT_GE((*pipeline)->statistics().deferred, 20u);
}

// A store in which the earlier owner puts a message off just before it loses the partition.
class TakenLate final : public Store {
 public:
  explicit TakenLate(Store& store) : store_(store) {}
  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    return store_.begin(scope);
  }
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view identity) override {
    Position owner = ONCE_TRY(store_.take(scope, partition, identity));
    auto transaction = ONCE_TRY(store_.begin(scope));
    Delivery first;
    first.partition = partition;
    first.id = "0";
    first.key = "k0";
    first.body = "b";
    first.timestamp_ms = 1000;
    first.attempt = 1;
    first.deferral.in_order = true;
    const Entry entry{
        .id = first.id, .fingerprint = {}, .born_ms = 1000, .partition = partition, .offset = 0};
    ONCE_TRY(transaction->admit(std::span(&entry, 1)));
    ONCE_TRY(transaction->settle(first, later("not yet", 3'600'000)));
    ONCE_TRY(transaction->advance(partition, owner, 1));
    ONCE_TRY(transaction->commit());
    return store_.take(scope, partition, identity);
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return store_.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override {
    return store_.forget(scope, horizon_ms, rows_max);
  }
  Records* records() override { return store_.records(); }
  ClaimStore* claims() override { return store_.claims(); }
  Deferrals* deferrals() override { return store_.deferrals(); }

 private:
  Store& store_;
};

TEST_F(LaterPipelineTest, what_is_put_off_until_the_partition_is_taken_holds_up_its_key) {
  options_.order = Order::key;
  options_.stop_at_end = true;
  TakenLate store(store_);
  auto pipeline = Pipeline::make(
      source_, store, each([](const Delivery& delivery, KeyValueTransaction& transaction) {
        return write_effect(delivery, transaction).map([] { return applied(); });
      }),
      options_);
  ASSERT_TRUE(pipeline) << pipeline.error().text;
  ASSERT_TRUE((*pipeline)->run());
  EXPECT_EQ(store_.deferrals()->deferred("shop", 0, 100).value().size(), 29u);
  for (const std::string& id : effects_of(storage_, "p0")) EXPECT_NE(std::stoi(id) % 7, 0) << id;
  EXPECT_EQ(effects_of(storage_, "p0").size(), 171u);
}

TEST_F(LaterPipelineTest, at_the_end_it_does_not_wait_and_the_next_run_handles_what_is_due) {
  options_.stop_at_end = true;
  std::atomic<bool> ready{false};
  const auto handle = [&](const Delivery& delivery,
                          KeyValueTransaction& transaction) -> Result<Outcome> {
    if (delivery.id == "7" && !ready) return later("not at once", 3'600'000);
    ONCE_TRY(write_effect(delivery, transaction));
    return applied();
  };
  auto first = Pipeline::make(source_, store_, each(handle), options_);
  ASSERT_TRUE((*first)->run());
  EXPECT_EQ((*first)->statistics().applied, 199u);
  const std::int64_t number = store_.deferrals()->deferred("shop", 0, 1).value().at(0).number;
  ASSERT_TRUE(store_.deferrals()->hasten("shop", std::span(&number, 1), "test"));
  ready = true;
  first->reset();
  source_.announce("p0");
  auto second = Pipeline::make(source_, store_, each(handle), options_);
  ASSERT_TRUE((*second)->run());
  EXPECT_EQ(effects_of(storage_, "p0").size(), 200u);
  EXPECT_EQ(effects_of(storage_, "p0").back(), "7");
}

}  // namespace
}  // namespace once
