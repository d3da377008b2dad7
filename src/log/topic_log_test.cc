// SPDX-License-Identifier: Apache-2.0
#include "log/topic_log.h"

#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "log/log_testing.h"

namespace once::log {
namespace {

constexpr std::uint32_t partitions = 3;

struct TopicBench {
  testing::MemoryFiles files;
  TestClock clock;
  ThreadExecutor executor{1};
  std::unique_ptr<TopicLog> topic;

  TopicBench() {
    TopicOptions options;
    options.partitions = partitions;
    EXPECT_TRUE(create_topic(files, "data", "t", options));
    reopen();
  }
  void reopen() {
    topic.reset();
    topic = TopicLog::open(files, "data", "t", clock, {}, &executor).value();
  }
  Result<Receipt> append(std::uint32_t partition, const Stamp& stamp,
                         const std::vector<Message>& messages) {
    return ONCE_TRY(topic->append(partition, Append{.stamp = stamp, .messages = messages}))
        .receipt();
  }
  Result<Receipt> append_raw(std::uint32_t partition, const Stamp& stamp,
                             const std::vector<Message>& messages) {
    Buffer buffer;
    encode_batch(buffer, 0, stamp, 1, messages);
    const RawBatch batch = ONCE_TRY(check_raw_batch(buffer.view()));
    return ONCE_TRY(topic->append(partition, Append{.raw = &batch})).receipt();
  }
};

TEST(TopicLog, a_name_has_one_id_in_all_partitions_also_after_a_restart) {
  TopicBench bench;
  const std::uint64_t id = bench.topic->enter(1, "shop")->producer;
  EXPECT_EQ(bench.topic->enter(0, "shop")->producer, id);
  EXPECT_NE(bench.topic->enter(0, "other")->producer, id);
  bench.reopen();
  const Stamp third = bench.topic->enter(2, "shop").value();
  EXPECT_EQ(third, (Stamp{id, 1, 0}));
  EXPECT_EQ(bench.topic->enter(2, "shop").value(), (Stamp{id, 2, 0}));
  EXPECT_EQ(bench.topic->enter(partitions, "shop").error().tag, "partition");
}

TEST(TopicLog, threads_that_enter_a_new_name_at_once_get_one_id) {
  TopicBench bench;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::future<std::uint64_t>> ids;
    for (std::uint32_t p = 0; p < partitions; ++p)
      ids.push_back(std::async(std::launch::async, [&, p] {
        return bench.topic->enter(p, fmt::format("p{}", round))->producer;
      }));
    std::set<std::uint64_t> different;
    for (auto& id : ids) different.insert(id.get());
    EXPECT_EQ(different.size(), 1u);
  }
}

TEST(TopicLog, an_epoch_of_the_topic_is_known_after_a_crash_and_fences_everywhere) {
  TopicBench bench;
  const Identity first = bench.topic->enter_topic("shop").value();
  EXPECT_EQ(first.epoch, 1u);
  for (std::uint32_t p = 0; p < partitions; ++p) {
    const Stamp stamp = bench.topic->admit(p, "shop", first).value();
    EXPECT_EQ(stamp, (Stamp{first.id, 1, 0}));
    EXPECT_EQ(bench.append(p, stamp, texts(0, 2)).value(), (Receipt{0, 0}));
    EXPECT_EQ(bench.topic->admit(p, "shop", first).value(), (Stamp{first.id, 1, 2}));
  }
  // One partition gets ahead; the next epoch of the topic is behind all of them.
  ASSERT_TRUE(bench.topic->enter(2, "shop"));
  bench.reopen();
  const Identity second = bench.topic->enter_topic("shop").value();
  EXPECT_EQ(second, (Identity{first.id, 3}));
  for (std::uint32_t p = 0; p < partitions; ++p) {
    EXPECT_EQ(bench.append(p, {first.id, 1, 2}, texts(2, 3)).error().tag, "fenced");
    EXPECT_EQ(bench.topic->admit(p, "shop", first).error().tag, "fenced");
    // Messages go on, record batches begin at 0; both are behind what is there.
    EXPECT_EQ(bench.append_raw(p, {second.id, 3, 0}, texts(2, 3)).value(), (Receipt{2, 0}));
    EXPECT_EQ(bench.append_raw(p, {second.id, 3, 0}, texts(2, 3)).value(), (Receipt{2, 1}));
    EXPECT_EQ(bench.append(p, {second.id, 3, 0}, texts(0, 2)).value(), (Receipt{0, 2}));
  }
}

TEST(TopicLog, epochs_that_are_drawn_at_once_are_different) {
  TopicBench bench;
  std::vector<std::future<Result<Identity>>> identities;
  for (int i = 0; i < 20; ++i)
    identities.push_back(
        std::async(std::launch::async, [&] { return bench.topic->enter_topic("shop"); }));
  std::set<std::uint32_t> epochs;
  std::set<std::uint64_t> ids;
  for (auto& future : identities) {
    const auto identity = future.get();
    // One that was overtaken is told so.
    if (!identity) {
      EXPECT_EQ(identity.error().tag, "fenced");
      continue;
    }
    EXPECT_TRUE(epochs.insert(identity->epoch).second);
    ids.insert(identity->id);
  }
  EXPECT_EQ(ids.size(), 1u);
}

// A log of an older version: every partition has drawn an id of its own for the same name.
TEST(TopicLog, of_an_older_version_is_opened_and_recognises_what_it_has) {
  TopicBench bench;
  bench.topic.reset();
  std::vector<Stamp> old;
  for (std::uint32_t p = 0; p < 2; ++p) {
    PartitionOptions options;
    options.random = [p] { return 1000 + 2000 * p; };
    auto partition =
        Partition::open(bench.files, bench.clock, partition_directory("data", "t", p), options)
            .value();
    old.push_back(partition->enter("shop").value());
    ASSERT_TRUE(append(*partition, old.back(), texts(0, 3)));
  }
  ASSERT_NE(old[0].producer, old[1].producer);
  for (int round = 0; round < 2; ++round) {
    bench.reopen();
    // As before: the stamps that partitions give out are their own.
    for (std::uint32_t p = 0; p < 2; ++p)
      EXPECT_EQ(bench.topic->enter(p, "shop")->producer, old[p].producer);
    // The id of the topic stands for all of them.
    const Identity identity = bench.topic->enter_topic("shop").value();
    EXPECT_EQ(identity.id, old[0].producer);
    for (std::uint32_t p = 0; p < partitions; ++p) {
      ASSERT_TRUE(bench.topic->admit(p, "shop", identity));
      const std::int64_t before = p < 2 ? 3 + round : round;
      const Receipt added =
          bench.append_raw(p, {identity.id, identity.epoch, 0}, texts(5, 6)).value();
      EXPECT_EQ(added, (Receipt{before, 0})) << p;
      EXPECT_EQ(bench.append_raw(p, {identity.id, identity.epoch, 0}, texts(5, 6)).value(),
                (Receipt{before, 1}));
      if (p == 2) continue;
      EXPECT_EQ(bench.append(p, {identity.id, identity.epoch, 0}, texts(0, 3)).value(),
                (Receipt{0, 3}));
    }
  }
}

TEST(TopicLog, appends_with_a_completion_go_to_their_partition) {
  TopicBench bench;
  std::promise<Result<Verdict>> done;
  bench.topic->append(2, Append{.messages = texts(0, 2)},
                      [&](const Result<Verdict>& verdict) { done.set_value(verdict); });
  EXPECT_EQ(done.get_future().get()->receipt(), (Receipt{0, 0}));
  EXPECT_EQ(bench.topic->partition(2).value()->info().end_offset, 2);
}

TEST(TopicLog, a_second_one_is_refused_until_the_first_is_gone) {
  TopicBench bench;
  EXPECT_EQ(TopicLog::open(bench.files, "data", "t", bench.clock).error().tag, "busy");
}

}  // namespace
}  // namespace once::log
