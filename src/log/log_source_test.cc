// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <once/log.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"
#include "log/topic.h"
#include "testing/scratch.h"

namespace once::log {
namespace {

using testing::MemoryFiles;
using testing::Scratch;

struct TopicBench {
  MemoryFiles files;
  TestClock clock;
  TopicOptions options;

  std::unique_ptr<Sink> sink() { return open_log_sink(files, "data", "orders", clock).value(); }
  std::unique_ptr<Source> source(bool stop_at_end = true) {
    return open_log_source(files, "data", "orders", {stop_at_end}, clock).value();
  }
  void create() { ASSERT_TRUE(create_topic(files, "data", "orders", options)); }
};

// Takes all announcements and seeks each partition to `offset`.
std::vector<std::string> settle(Source& source, std::size_t partitions, std::int64_t offset = -1) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < partitions; ++i) {
    const Batch batch = source.poll(10, 0).value();
    EXPECT_EQ(batch.event, Batch::Event::assigned);
    names.emplace_back(batch.partition);
    EXPECT_TRUE(source.replay()->seek(batch.partition, offset));
  }
  return names;
}

std::vector<std::string> drain(Source& source, std::size_t count_max = 7) {
  std::vector<std::string> bodies;
  for (;;) {
    const Batch batch = source.poll(count_max, 0).value();
    if (batch.event == Batch::Event::end) return bodies;
    EXPECT_LE(batch.deliveries.size(), count_max);
    for (const Delivery& delivery : batch.deliveries) {
      EXPECT_EQ(delivery.partition, batch.partition);
      bodies.emplace_back(delivery.body);
    }
    if (batch.deliveries.empty()) {
      ADD_FAILURE() << "no end";
      return bodies;
    }
  }
}

// --- A topic whose files are replaced while it is in use.

class ReplacedTopic : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(create()); }

  Status create() { return create_topic(system_files(), home(), "orders", {}); }
  std::string home() const { return scratch_.path("data"); }
  std::string orders() const { return home() + "/orders"; }
  std::unique_ptr<Sink> sink() {
    return open_log_sink(system_files(), home(), "orders", clock_).value();
  }
  // Reads to the end, then once more after the reader has had time to look.
  Result<Batch> poll_later(Source& source) {
    for (Result<Batch> batch = source.poll(100, 0);; batch = source.poll(100, 0))
      if (!batch || batch->drained) break;
    clock_.time_ms += 1'001;
    return source.poll(100, 0);
  }
  std::unique_ptr<Source> settled_source() {
    auto source = open_log_source(system_files(), home(), "orders", {}, clock_).value();
    settle(*source, 1);
    return source;
  }

  const Scratch scratch_;
  TestClock clock_;
};

TEST_F(ReplacedTopic, a_writer_acknowledges_nothing_after_its_directory_was_moved_away) {
  auto writer = sink();
  Stamp stamp = writer->producers()->enter(0, "shop").value();
  ASSERT_TRUE(writer->append(0, stamp, texts(0, 3)));
  std::filesystem::rename(orders(), orders() + ".old");
  for (const bool is_made_again : {false, true}) {
    if (is_made_again) {
      ASSERT_TRUE(create());
    }
    const auto lost = writer->append(0, after(stamp, 3), texts(3, 5));
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().tag, "gone") << lost.error().text;
    EXPECT_EQ(lost.error().remedy, Remedy::stop);
  }
  EXPECT_EQ(sink()->producers()->enter(0, "shop").value().sequence, 0u)
      << "the new topic has nothing";
  // Put back, it goes on, and what was not acknowledged counts once.
  writer.reset();
  std::filesystem::remove_all(orders());
  std::filesystem::rename(orders() + ".old", orders());
  writer = sink();
  stamp = writer->producers()->enter(0, "shop").value();
  stamp.sequence = 3;
  ASSERT_TRUE(writer->append(0, stamp, texts(3, 5)));
  auto source = open_log_source(system_files(), home(), "orders", {true}, clock_).value();
  settle(*source, 1);
  EXPECT_EQ(drain(*source), bodies(0, 5));
}

TEST_F(ReplacedTopic, a_reader_that_waits_is_told_that_it_was_deleted) {
  ASSERT_TRUE(sink()->append(0, {}, texts(0, 3)));
  auto source = settled_source();
  ASSERT_TRUE(poll_later(*source));
  ASSERT_TRUE(delete_topic(system_files(), home(), "orders"));
  const auto gone = poll_later(*source);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().tag, "gone") << gone.error().text;
}

TEST_F(ReplacedTopic, a_reader_that_waits_is_told_that_it_was_created_again) {
  ASSERT_TRUE(sink()->append(0, {}, texts(0, 3)));
  auto source = settled_source();
  ASSERT_TRUE(poll_later(*source));
  ASSERT_TRUE(delete_topic(system_files(), home(), "orders"));
  ASSERT_TRUE(create());
  ASSERT_TRUE(sink()->append(0, {}, texts(10, 20)));
  const auto gone = poll_later(*source);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().tag, "gone") << gone.error().text;
  EXPECT_NE(gone.error().text.find("Start again"), std::string::npos) << gone.error().text;
}

// A backup has the identity of the topic, and other files.
TEST_F(ReplacedTopic, a_reader_that_waits_is_told_that_it_was_restored) {
  ASSERT_TRUE(sink()->append(0, {}, texts(0, 3)));
  std::filesystem::copy(orders(), orders() + ".backup", std::filesystem::copy_options::recursive);
  auto source = settled_source();
  ASSERT_TRUE(poll_later(*source));
  std::filesystem::remove_all(orders());
  std::filesystem::rename(orders() + ".backup", orders());
  const auto gone = poll_later(*source);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().tag, "gone") << gone.error().text;
}

// --- Reading

TEST(LogSource, announces_its_partitions_then_reads_them_in_turn_to_the_end) {
  TopicBench bench;
  bench.options.partitions = 3;
  bench.create();
  auto sink = bench.sink();
  for (std::uint32_t p = 0; p < 3; ++p) ASSERT_TRUE(sink->append(p, {}, texts(0, 20)));
  auto source = bench.source();
  EXPECT_TRUE(source->traits().ordered && source->traits().replayable);
  EXPECT_EQ(source->traits().name, "file:data/orders");
  EXPECT_EQ(settle(*source, 3), (std::vector<std::string>{"orders/0", "orders/1", "orders/2"}));
  std::map<std::string, std::int64_t> next;
  std::vector<std::string> order;
  for (;;) {
    const Batch batch = source->poll(7, 0).value();
    if (batch.event == Batch::Event::end) break;
    order.emplace_back(batch.partition);
    for (const Delivery& delivery : batch.deliveries)
      EXPECT_EQ(delivery.offset, next[std::string(batch.partition)]++);
    EXPECT_EQ(batch.end_offset, next[std::string(batch.partition)]);
    EXPECT_EQ(batch.available_offset, 20);
    ASSERT_TRUE(source->ack(batch.deliveries));
  }
  for (const auto& [name, offset] : next) EXPECT_EQ(offset, 20) << name;
  EXPECT_EQ((std::vector<std::string>(order.begin(), order.begin() + 4)),
            (std::vector<std::string>{"orders/0", "orders/1", "orders/2", "orders/0"}));
}

TEST(LogSource, deliveries_stay_valid_as_long_as_their_batch) {
  TopicBench bench;
  bench.create();
  auto sink = bench.sink();
  ASSERT_TRUE(sink->append(0, {}, texts(0, 100)));
  auto source = bench.source();
  settle(*source, 1);
  std::vector<Batch> batches;
  for (;;) {
    Batch batch = source->poll(9, 0).value();
    if (batch.event == Batch::Event::end) break;
    batches.push_back(std::move(batch));
  }
  ASSERT_TRUE(source->replay()->seek("orders/0", 0));
  (void)source->poll(100, 0);
  int i = 0;
  for (const Batch& batch : batches)
    for (const Delivery& delivery : batch.deliveries) {
      EXPECT_EQ(delivery.body, fmt::format("m{}", i));
      EXPECT_EQ(delivery.id, fmt::format("id{}", i++));
    }
  EXPECT_EQ(i, 100);
}

TEST(LogSource, seeks_to_any_offset_it_has_and_says_gone_for_others) {
  TopicBench bench;
  bench.options.segment_bytes_max = segment_bytes_least;
  bench.options.retention_bytes = 3000;
  bench.create();
  auto sink = bench.sink();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(sink->append(0, {}, texts(i, i + 1)));
  const std::int64_t first =
      describe_topic(bench.files, "data", "orders").value().partitions[0].first_offset;
  ASSERT_GT(first, 0);
  auto source = bench.source();
  settle(*source, 1);
  for (std::int64_t offset = first; offset <= 50; ++offset) {
    ASSERT_TRUE(source->replay()->seek("orders/0", offset));
    EXPECT_EQ(drain(*source), bodies(static_cast<int>(offset), 50));
  }
  EXPECT_EQ(source->replay()->seek("orders/0", first - 1).error().tag, "gone");
  EXPECT_EQ(source->replay()->seek("orders/0", 51).error().tag, "gone");
  EXPECT_EQ(source->replay()->seek("orders/1", 0).error().tag, "partition");
  ASSERT_TRUE(source->replay()->seek("orders/0", -1));
  EXPECT_EQ(drain(*source), bodies(static_cast<int>(first), 50));
}

TEST(LogSource, a_reader_that_retention_overtook_is_told_that_messages_are_gone) {
  TopicBench bench;
  bench.options.segment_bytes_max = segment_bytes_least;
  bench.options.retention_bytes = 3000;
  bench.create();
  auto sink = bench.sink();
  ASSERT_TRUE(sink->append(0, {}, texts(0, 2)));
  auto source = bench.source(false);
  settle(*source, 1);
  ASSERT_EQ(source->poll(1, 0).value().deliveries.size(), 1u);
  for (int i = 2; i < 60; ++i) ASSERT_TRUE(sink->append(0, {}, texts(i, i + 1)));
  ASSERT_EQ(source->poll(1, 0).value().deliveries.size(), 1u);  // it had read this one
  // It still has the deleted segment open; behind that there is a hole.
  Result<Batch> batch = source->poll(100, 0);
  for (int polls = 0; batch && polls < 100; ++polls) batch = source->poll(100, 0);
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().tag, "gone");
}

TEST(LogSource, released_deliveries_come_again_with_a_higher_attempt) {
  TopicBench bench;
  bench.create();
  auto sink = bench.sink();
  ASSERT_TRUE(sink->append(0, {}, texts(0, 10)));
  auto source = bench.source();
  settle(*source, 1);
  const Batch batch = source->poll(6, 0).value();
  ASSERT_TRUE(source->release(std::span(batch.deliveries).subspan(2)));
  const Batch again = source->poll(100, 0).value();
  ASSERT_EQ(again.deliveries.size(), 8u);
  EXPECT_EQ(again.deliveries[0].offset, 2);
  EXPECT_EQ(again.deliveries[0].attempt, 2u);
  EXPECT_EQ(again.deliveries[3].attempt, 2u);
  EXPECT_EQ(again.deliveries[4].attempt, 1u);
}

TEST(LogSource, an_empty_topic_gives_nothing_or_the_end) {
  TopicBench bench;
  bench.create();
  auto bounded = bench.source(true);
  settle(*bounded, 1);
  EXPECT_EQ(bounded->poll(10, 0).value().event, Batch::Event::end);
  auto endless = bench.source(false);
  settle(*endless, 1, 0);
  const Batch nothing = endless->poll(10, 3).value();
  EXPECT_EQ(nothing.event, Batch::Event::messages);
  EXPECT_TRUE(nothing.deliveries.empty() && nothing.partition.empty());
  // The partition comes into being, and the same source sees it.
  ASSERT_TRUE(bench.sink()->append(0, {}, texts(0, 2)));
  EXPECT_EQ(endless->poll(10, 0).value().deliveries.size(), 2u);
}

TEST(LogSource, sees_nothing_that_is_not_durable) {
  TopicBench bench;
  bench.create();
  auto sink = bench.sink();
  ASSERT_TRUE(sink->append(0, {}, texts(0, 2)));
  bench.files.refuse = [&](const std::string& call, const std::string& path) -> Status {
    return call == "sync" ? fail(error_from_errno(EIO, "sync", path)) : Status{};
  };
  EXPECT_FALSE(sink->append(0, {}, texts(2, 4)));  // written, not synced
  auto source = bench.source();
  settle(*source, 1);
  EXPECT_EQ(drain(*source), bodies(0, 2));
}

// After a power cut the watermark is old or lost, and everything that can be read is on the disk.
TEST(LogSource, without_a_writer_frames_count_that_the_watermark_does_not_know) {
  for (int published = 0; published <= 5; ++published) {
    TopicBench bench;
    bench.create();
    auto sink = bench.sink();
    std::string watermark;
    for (int i = 0; i < 5; ++i) {
      if (i == published) watermark = bench.files.content("data/orders/0/watermark");
      ASSERT_TRUE(sink->append(0, {}, texts(i, i + 1)));
    }
    auto contents = bench.files.contents();
    sink.reset();
    if (published < 5)
      contents["data/orders/0/watermark"] = watermark;
    else
      contents.erase("data/orders/0/watermark");
    bench.files.set_contents(contents);
    auto source = bench.source();
    settle(*source, 1);
    EXPECT_EQ(drain(*source), bodies(0, 5)) << published;
    EXPECT_EQ(describe_topic(bench.files, "data", "orders").value().partitions[0].end_offset, 5);
  }
}

// A writer that was killed between write and sync: the group may be in memory only, so a reader
// leaves it out. The next writer finds it, and a position may be behind it already.
TEST(LogSource, a_group_that_its_writer_never_synced_does_not_count) {
  TopicBench bench;
  bench.create();
  auto sink = bench.sink();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(sink->append(0, {}, texts(i, i + 1)));
  bench.files.refuse = [](const std::string& call, const std::string& path) -> Status {
    if (call == "sync") return fail(error_from_errno(EIO, call, path));
    return {};
  };
  EXPECT_FALSE(sink->append(0, {}, texts(4, 5)));
  bench.files.refuse = nullptr;
  sink.reset();  // poisoned, so it changes nothing
  auto source = bench.source();
  settle(*source, 1);
  EXPECT_EQ(drain(*source), bodies(0, 4));
  ASSERT_TRUE(source->replay()->seek("orders/0", 5));
  EXPECT_EQ(drain(*source), bodies(5, 5));
  auto next = bench.sink();
  ASSERT_TRUE(source->replay()->seek("orders/0", 0));
  EXPECT_EQ(drain(*source), bodies(0, 5));
}

TEST(LogSource, with_a_writer_only_the_watermark_counts) {
  TopicBench bench;
  bench.create();
  auto sink = bench.sink();
  ASSERT_TRUE(sink->append(0, {}, texts(0, 1)));
  const std::string watermark = bench.files.content("data/orders/0/watermark");
  ASSERT_TRUE(sink->append(0, {}, texts(1, 2)));
  bench.files.content("data/orders/0/watermark") = watermark;
  auto source = bench.source();
  settle(*source, 1);
  EXPECT_EQ(drain(*source), bodies(0, 1));
}

TEST(LogSource, reads_while_another_thread_writes_and_rolls_and_deletes_nothing_too_early) {
  Scratch scratch;
  TopicOptions options;
  options.segment_bytes_max = 16 << 10;
  ASSERT_TRUE(once::create_topic(scratch.directory(), "orders", options));
  constexpr int count = 3000;
  auto sink = once::open_log_sink(scratch.directory(), "orders").value();
  std::thread writer([&] {
    const Stamp stamp = sink->producers()->enter(0, "p").value();
    for (int i = 0; i < count; i += 5)
      EXPECT_TRUE(sink->append(0, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 5)));
  });
  auto source = once::open_log_source(scratch.directory(), "orders").value();
  settle(*source, 1);
  int next = 0;
  for (int polls = 0; next < count && polls < 100'000; ++polls) {
    const Batch batch = source->poll(100, 50).value();
    for (const Delivery& delivery : batch.deliveries) {
      ASSERT_EQ(delivery.offset, next);
      ASSERT_EQ(delivery.body, fmt::format("m{}", next++));
    }
  }
  writer.join();
  EXPECT_EQ(next, count);
}

TEST(LogSource, reads_while_another_process_writes_and_after_that_process_was_killed) {
  Scratch scratch;
  TopicOptions options;
  options.segment_bytes_max = 16 << 10;
  ASSERT_TRUE(once::create_topic(scratch.directory(), "orders", options));
  constexpr int least = 400;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it must not outlive a test that failed
    auto sink = once::open_log_sink(scratch.directory(), "orders");
    if (!sink) ::_exit(3);
    const auto stamp = (*sink)->producers()->enter(0, "p");
    for (int i = 0; stamp && i < 100'000; ++i)
      if (!(*sink)->append(0, after(*stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)))
        ::_exit(4);
    ::_exit(5);
  }
  auto source = once::open_log_source(scratch.directory(), "orders", {}).value();
  settle(*source, 1);
  int next = 0;
  for (int polls = 0; next < least && polls < 20'000; ++polls) {
    const Batch batch = source->poll(50, 20).value();
    for (const Delivery& delivery : batch.deliveries)
      ASSERT_EQ(delivery.body, fmt::format("m{}", next++));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_GE(next, least);
  // Another writer takes over; the same source reads on, without a hole or a repetition.
  auto sink = once::open_log_sink(scratch.directory(), "orders");
  ASSERT_TRUE(sink) << sink.error().text;
  const Stamp stamp = (*sink)->producers()->enter(0, "p").value();
  const int have = static_cast<int>(stamp.sequence);
  EXPECT_GE(have, next);
  ASSERT_TRUE((*sink)->append(0, stamp, texts(have, have + 3)));
  for (int polls = 0; next < have + 3 && polls < 20'000; ++polls) {
    const Batch batch = source->poll(50, 20).value();
    for (const Delivery& delivery : batch.deliveries)
      ASSERT_EQ(delivery.body, fmt::format("m{}", next++));
  }
  EXPECT_EQ(next, have + 3);
}

TEST(LogSource, reads_several_topics_of_a_directory) {
  TopicBench bench;
  bench.options.partitions = 2;
  bench.create();
  ASSERT_TRUE(create_topic(bench.files, "data", "refunds", {}));
  const auto orders = bench.sink();
  const auto refunds = open_log_sink(bench.files, "data", "refunds", bench.clock).value();
  const auto append = [](Sink& sink, std::uint32_t partition, const std::string& body) {
    const Stamp stamp = sink.producers()->enter(partition, "test").value();
    const std::vector<Message> one{{.id = body, .body = body}};
    ASSERT_TRUE(sink.append(partition, stamp, one));
  };
  append(*orders, 0, "o1");
  append(*orders, 1, "o2");
  append(*refunds, 0, "r1");
  append(*refunds, 0, "r2");
  const auto source =
      open_log_source(bench.files, "data", "orders,refunds", {true}, bench.clock).value();
  EXPECT_EQ(source->traits().name, "file:data/orders,refunds");
  EXPECT_EQ(source->traits().identity, "") << "they have none in common";
  EXPECT_EQ(settle(*source, 3), (std::vector<std::string>{"orders/0", "orders/1", "refunds/0"}));
  EXPECT_EQ(drain(*source), (std::vector<std::string>{"o1", "o2", "r1", "r2"}));
  EXPECT_EQ(source->replay()->ends().value().back(), (PartitionEnd{"refunds/0", 2}));
  const auto twice = open_log_source(bench.files, "data", "orders,orders", {}, bench.clock);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().text, "the topic orders is named twice");
  EXPECT_FALSE(open_log_source(bench.files, "data", "orders,", {}, bench.clock));
}

}  // namespace
}  // namespace once::log
