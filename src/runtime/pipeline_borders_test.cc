// SPDX-License-Identifier: Apache-2.0
// Pipelines beside other processes, and in front of topics that are not what they were.
#include <gtest/gtest.h>
#include <once/pipeline.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/pipeline_testing.h"
#include "testing/sim_clock.h"

namespace once {
namespace {

using testing::apply_effect;
using testing::effects_of;
using testing::numbered;
using testing::ScriptSource;
using testing::write_effect;

class PipelineBorders : public testing::PipelineFixture {
 protected:
  static constexpr std::int64_t hour_ms = 3'600'000;

  PipelineBorders() {
    options_.retry.attempts_max = 1'000'000;
    options_.retention_ms = hour_ms;
  }

  static SourceTraits topic(std::vector<std::string> partitions, std::string identity = {}) {
    return {.name = "script:",
            .ordered = true,
            .replayable = true,
            .redelivery_ms_max = 0,
            .identity = std::move(identity),
            .partitions = std::move(partitions)};
  }
  // Messages whose births go from `hours` ago until now.
  void fill(ScriptSource& source, const std::string& partition, const std::string& prefix,
            std::size_t count, std::int64_t hours = 10) {
    const std::int64_t first_ms = system_clock().now_ms() - hours * hour_ms;
    for (std::size_t i = 0; i < count; ++i)
      source.add(partition, {.id = prefix + std::to_string(i),
                             .key = "k" + std::to_string(i % 7),
                             .body = "body of " + prefix + std::to_string(i),
                             .timestamp_ms = first_ms + hours * hour_ms * static_cast<int>(i) /
                                                            static_cast<int>(count)});
    source.announce(partition);
  }
  std::unique_ptr<Pipeline> make(Source& source, Handler handler = each(apply_effect)) {
    return make_from(source, std::move(handler));
  }
  // Runs until `done`, but for ten seconds at most.
  static void run_until(Pipeline& pipeline, const std::function<bool()>& done) {
    std::thread stopper([&] {
      for (int i = 0; i < 2000 && !done(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pipeline.stop();
    });
    EXPECT_TRUE(pipeline.run());
    stopper.join();
    EXPECT_TRUE(done());
  }
  // The way out for a position at 60 of a topic that is another one: nothing has moved it, and a
  // person sets it.
  void read_from_the_first(ScriptSource& again, std::uint64_t applied) {
    EXPECT_EQ(store_.position(options_.scope, "p0").value().offset, 60);
    ASSERT_TRUE(store_.repairs()->correct(options_.scope, SetPosition{"p0", -1}, "made anew"));
    again.announce("p0");
    auto pipeline = make(again);
    ASSERT_TRUE(pipeline->run());
    EXPECT_EQ(pipeline->statistics().applied, applied);
  }
  std::int64_t horizon_ms() { return store_.records()->horizon_ms("shop").value(); }
  PartitionRecord record(const std::string& partition) {
    const ScopeRecord scope = store_.records()->describe("shop").value();
    for (const PartitionRecord& one : scope.partitions)
      if (one.partition == partition) return one;
    return {};
  }
};

// One member has caught up, the other has not begun: nothing of the other's is forgotten.
TEST_F(PipelineBorders, after_downtime_a_member_does_not_forget_what_another_has_to_handle) {
  options_.stop_at_end = false;
  ScriptSource of_first(topic({"p0", "p1"})), of_second(topic({"p0", "p1"}));
  fill(of_first, "p0", "a", 500);
  fill(of_second, "p1", "b", 500);
  auto first = make(of_first);
  const auto began = std::chrono::steady_clock::now();
  run_until(*first, [&] {
    return first->statistics().applied == 500 &&
           std::chrono::steady_clock::now() - began > std::chrono::milliseconds(700);
  });
  EXPECT_EQ(horizon_ms(), 0);
  options_.stop_at_end = true;
  auto second = make(of_second);
  ASSERT_TRUE(second->run());
  EXPECT_EQ(second->statistics().too_old, 0u);
  EXPECT_EQ(effects_of(store_, "p0"), numbered(500, "a"));
  EXPECT_EQ(effects_of(store_, "p1"), numbered(500, "b"));
}

TEST_F(PipelineBorders, a_partition_without_traffic_does_not_hold_the_horizon_for_ever) {
  for (const Order order : {Order::partition, Order::key}) {
    MemoryStore store(system_clock());
    options_.stop_at_end = false;
    options_.order = order;
    ScriptSource source(topic({"p0", "idle"}));
    fill(source, "p0", "m", 300);
    source.announce("idle");
    auto pipeline = Pipeline::make(source, store, each(apply_effect), options_).value();
    run_until(*pipeline, [&] { return pipeline->statistics().forgotten > 200; });
    EXPECT_EQ(pipeline->statistics().too_old, 0u);
    EXPECT_EQ(pipeline->statistics().applied, 300u);
    options_.order = Order::partition;
  }
}

TEST_F(PipelineBorders, with_order_by_key_a_message_that_is_retried_holds_the_horizon) {
  options_.stop_at_end = false;
  options_.order = Order::key;
  options_.lanes = 2;
  ScriptSource source(topic({"p0"}));
  fill(source, "p0", "m", 300);
  std::atomic<bool> works = false;
  auto pipeline =
      make(source,
           each([&](const Delivery& delivery, KeyValueTransaction& transaction) -> Result<Outcome> {
             if (delivery.id == "m3" && !works) return retry("not yet", 10);
             Delivery of_key = delivery;
             of_key.partition = delivery.key;
             ONCE_TRY(write_effect(of_key, transaction));
             return applied();
           }));
  const std::int64_t born_ms = source.batch("p0").deliveries[3].timestamp_ms;
  run_until(*pipeline, [&] {
    if (record("p0").waiting_ms == born_ms && pipeline->statistics().retried > 50) works = true;
    return works && pipeline->statistics().applied == 300;
  });
  EXPECT_EQ(pipeline->statistics().too_old, 0u);
  std::size_t effects = 0;
  for (int key = 0; key < 7; ++key) effects += effects_of(store_, "k" + std::to_string(key)).size();
  EXPECT_EQ(effects, 300u);
}

TEST_F(PipelineBorders, a_message_from_the_future_is_told_and_the_horizon_stays) {
  ScriptSource source(topic({"p0"}));
  source.add("p0", {.id = "2099", .body = "b", .timestamp_ms = 4'070'908'800'000});
  fill(source, "p0", "m", 100);
  auto pipeline = make(source);
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().ahead, 1u);
  EXPECT_EQ(pipeline->statistics().applied, 100u);
  EXPECT_LE(record("p0").settled_ms, system_clock().now_ms());
  EXPECT_EQ(effects_of(store_, "p0"), numbered(100));
}

// A person has set it, and the pipeline that runs does not undo it.
TEST_F(PipelineBorders, a_horizon_that_was_set_stays_while_a_pipeline_runs) {
  options_.stop_at_end = false;
  ScriptSource source(topic({"p0"}));
  fill(source, "p0", "m", 300);
  auto pipeline = make(source);
  int step = 0;
  std::uint64_t forgotten = 0;
  auto since = std::chrono::steady_clock::now();
  run_until(*pipeline, [&] {
    const auto now = std::chrono::steady_clock::now();
    if (step == 0 && horizon_ms() > 0) {
      EXPECT_TRUE(store_.repairs()->correct("shop", SetHorizon{1000}, "replay what is too old"));
      forgotten = pipeline->statistics().forgotten;
      since = now;
      step = 1;
    }
    if (step == 1 && now - since > std::chrono::milliseconds(1200)) {
      EXPECT_EQ(horizon_ms(), 1000);
      EXPECT_TRUE(store_.repairs()->correct("shop", ReleaseHorizon{}, "it is replayed"));
      step = 2;
    }
    return step == 2 && horizon_ms() > 1000;
  });
  EXPECT_GT(forgotten, 0u);
}

// The same name, other messages: they are not skipped up to the old position.
TEST_F(PipelineBorders, a_topic_that_was_created_again_is_noticed_in_both_orders) {
  for (const Order order : {Order::partition, Order::key}) {
    options_.order = order;
    options_.scope = order == Order::key ? "by key" : "shop";
    ScriptSource first(topic({"p0"})), again(topic({"p0"}));
    fill(first, "p0", "a", 60, 0);
    ASSERT_TRUE(make(first)->run());
    fill(again, "p0", "b", 200, 0);
    const Status refused = make(again)->run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "gone");
    EXPECT_EQ(refused.error().remedy, Remedy::stop);
    EXPECT_NE(refused.error().text.find("once position set"), std::string::npos);
    read_from_the_first(again, 200);
  }
}

// Where the last handled message was, the new topic has the end of a transaction.
TEST_F(PipelineBorders, a_topic_that_was_created_again_is_noticed_at_an_offset_of_no_message) {
  for (const Order order : {Order::partition, Order::key}) {
    options_.order = order;
    options_.scope = order == Order::key ? "by key" : "shop";
    ScriptSource first(topic({"p0"})), again(topic({"p0"}));
    fill(first, "p0", "a", 60, 0);
    ASSERT_TRUE(make(first)->run());
    fill(again, "p0", "b", 59, 0);
    again.add_marker("p0");
    fill(again, "p0", "c", 100, 0);
    const Status refused = make(again)->run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().tag, "gone") << refused.error().text;
    read_from_the_first(again, 159);
  }
}

// It has nothing that would be delivered behind the last handled message: a run that ends with its
// source must not say that all is well, and one that waits must not wait for the next message.
TEST_F(PipelineBorders, a_topic_that_was_created_again_is_noticed_at_its_end) {
  ScriptSource first(topic({"p0"}));
  fill(first, "p0", "a", 60, 0);
  ASSERT_TRUE(make(first)->run());
  for (const std::size_t count : {10u, 59u})
    for (const bool stop_at_end : {true, false}) {
      options_.stop_at_end = stop_at_end;
      ScriptSource again(topic({"p0"}));
      fill(again, "p0", "b", count, 0);
      again.add_marker("p0");
      const Status refused = make(again)->run();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().tag, "gone") << refused.error().text;
      EXPECT_NE(refused.error().text.find("p0"), std::string::npos) << refused.error().text;
    }
}

// Compaction may remove the last handled message and keep older ones.
TEST_F(PipelineBorders, a_handled_message_that_was_compacted_is_not_missed) {
  SourceTraits traits = topic({"p0", "p1"});
  traits.compacted = {"p0"};
  ScriptSource source(traits);
  fill(source, "p0", "m", 60, 0);
  ASSERT_TRUE(make(source)->run());
  source.remove("p0", 59);
  source.announce("p0");
  ASSERT_TRUE(make(source)->run());
  fill(source, "p0", "n", 40, 0);
  auto pipeline = make(source);
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().applied, 40u);
  EXPECT_EQ(effects_of(store_, "p0").size(), 100u);
}

TEST_F(PipelineBorders, a_source_that_says_it_is_another_topic_is_not_read_from_the_old_position) {
  ScriptSource first(topic({"p0"}, "log 1")), other(topic({"p0"}, "log 2"));
  fill(first, "p0", "a", 10, 0);
  fill(other, "p0", "a", 10, 0);
  ASSERT_TRUE(make(first)->run());
  const Status refused = make(other)->run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "gone");
  first.announce("p0");
  EXPECT_TRUE(make(first)->run());
}

// The source has deleted what was handled, as it may: there is nothing to compare.
TEST_F(PipelineBorders, a_handled_message_that_the_source_has_forgotten_is_not_missed) {
  ScriptSource source(topic({"p0"}));
  fill(source, "p0", "m", 60, 0);
  ASSERT_TRUE(make(source)->run());
  fill(source, "p0", "n", 40, 0);
  source.forget_below("p0", 60);
  auto pipeline = make(source);
  ASSERT_TRUE(pipeline->run());
  EXPECT_EQ(pipeline->statistics().applied, 40u);
  EXPECT_EQ(effects_of(store_, "p0").size(), 100u);
}

// The lane wakes up for the partition while the poller is still taking the id of its first batch
// from a large body: the batch is not finished because of that.
TEST_F(PipelineBorders, a_run_to_the_end_waits_for_a_batch_that_is_long_in_coming) {
  options_.id = IdRule::parse("digest:").value();
  for (int i = 0; i < 10; ++i) {
    ScriptSource source;
    source.add("p0", {.key = "k", .body = std::string(4'000'000, 'x') + std::to_string(i)});
    source.announce("p0");
    options_.scope = "shop " + std::to_string(i);
    auto pipeline = make(source);
    ASSERT_TRUE(pipeline->run());
    EXPECT_EQ(pipeline->statistics().applied, 1u) << i;
  }
}

// Counts how often the books of a scope are read.
class CountedStore final : public Store, private Records {
 public:
  explicit CountedStore(Store& store) : store_(store) {}
  int described() const { return described_; }

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override {
    return store_.begin(scope);
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
  Records* records() override { return this; }

 private:
  Result<ScopeRecord> describe(std::string_view scope) override {
    ++described_;
    return store_.records()->describe(scope);
  }
  Result<std::vector<std::string>> scopes() override { return store_.records()->scopes(); }
  Result<std::vector<LedgerRecord>> ledger(std::string_view scope, std::string_view from_id,
                                           std::size_t count_max) override {
    return store_.records()->ledger(scope, from_id, count_max);
  }
  Result<std::vector<ParkedRecord>> parked(std::string_view scope, std::int64_t after_number,
                                           std::size_t count_max) override {
    return store_.records()->parked(scope, after_number, count_max);
  }
  Result<std::vector<OperationRecord>> operations(std::string_view scope, std::int64_t after_number,
                                                  std::size_t count_max) override {
    return store_.records()->operations(scope, after_number, count_max);
  }

  Store& store_;
  std::atomic<int> described_{0};
};

// With a thousand partitions such a read is not cheap: looking around has none of its own where the
// horizon needs one.
TEST_F(PipelineBorders, the_books_are_read_once_for_the_horizon_and_for_looking_around) {
  for (const std::int64_t retention_ms : {hour_ms, std::int64_t{-1}}) {
    testing::SimClock clock;  // stands still: each of the two is due once
    options_.retention_ms = retention_ms;
    options_.scope = "shop " + std::to_string(retention_ms);
    CountedStore counted(store_);
    ScriptSource source(topic({"p0"}));
    fill(source, "p0", "m", 60, 0);
    auto pipeline = Pipeline::make(source, counted, each(apply_effect), options_, clock).value();
    ASSERT_TRUE(pipeline->run());
    EXPECT_EQ(pipeline->statistics().applied, 60u);
    EXPECT_EQ(counted.described(), 2) << "one at the start, one for the clock when it is assigned";
  }
}

}  // namespace
}  // namespace once
