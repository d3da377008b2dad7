// SPDX-License-Identifier: Apache-2.0
#include "log/topic.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"
#include "testing/scratch.h"

namespace once::log {
namespace {

using testing::MemoryFiles;
using testing::Scratch;

TEST(Topic, creating_it_twice_happens_once_and_answers_the_same) {
  MemoryFiles files;
  TopicOptions options;
  options.partitions = 3;
  options.retention_ms = 1000;
  options.gaps = GapPolicy::hold;
  EXPECT_TRUE(create_topic(files, "data", "orders", options));
  const auto contents = files.contents();
  EXPECT_TRUE(create_topic(files, "data", "orders", options));
  EXPECT_EQ(files.contents(), contents);
  EXPECT_EQ(read_topic(files, "data", "orders").value().options, options);
  options.partitions = 4;
  EXPECT_EQ(create_topic(files, "data", "orders", options).error().tag, "exists");
}

TEST(Topic, deleting_it_twice_happens_once_and_answers_the_same) {
  MemoryFiles files;
  TestClock clock;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock).value()->append(0, {}, texts(0, 1)));
  EXPECT_TRUE(delete_topic(files, "data", "orders"));
  EXPECT_TRUE(files.contents().empty());
  EXPECT_TRUE(delete_topic(files, "data", "orders"));
  EXPECT_EQ(open_log_sink(files, "data", "orders", clock).error().tag, "missing");
  EXPECT_EQ(open_log_source(files, "data", "orders", {}, clock).error().tag, "missing");
}

TEST(Topic, a_deletion_that_was_interrupted_anywhere_can_be_asked_for_again) {
  for (int failing = 1; failing < 14; ++failing) {
    MemoryFiles files;
    TestClock clock;
    ASSERT_TRUE(create_topic(files, "data", "orders", {}));
    ASSERT_TRUE(open_log_sink(files, "data", "orders", clock).value()->append(0, {}, texts(0, 1)));
    int calls = 0;
    files.refuse = [&](const std::string&, const std::string& path) -> Status {
      return ++calls == failing ? fail(error_from_errno(EIO, "use", path)) : Status{};
    };
    (void)delete_topic(files, "data", "orders");
    files.refuse = nullptr;
    // Deleted or created anew: in both cases none of the old messages comes back.
    if (failing % 2 == 0) {
      EXPECT_TRUE(delete_topic(files, "data", "orders")) << failing;
    }
    ASSERT_TRUE(create_topic(files, "data", "orders", {})) << failing;
    auto sink = open_log_sink(files, "data", "orders", clock);
    ASSERT_TRUE(sink) << failing << ": " << sink.error().text;
    const auto receipt = (*sink)->append(0, {}, texts(1, 2)).value();
    EXPECT_TRUE(receipt.offset == 0 || failing == 1) << failing;
  }
}

TEST(Topic, data_without_a_topic_file_is_neither_used_nor_deleted) {
  MemoryFiles files;
  TestClock clock;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock).value()->append(0, {}, texts(0, 1)));
  auto contents = files.contents();
  contents.erase("data/orders/topic");
  files.set_contents(contents);
  EXPECT_EQ(create_topic(files, "data", "orders", {}).error().tag, "corrupt");
  EXPECT_TRUE(delete_topic(files, "data", "orders"));
  EXPECT_EQ(files.contents(), contents);
}

TEST(Topic, every_flipped_bit_of_its_file_is_found) {
  MemoryFiles files;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  const std::string good = files.content("data/orders/topic");
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string& bad = files.content("data/orders/topic");
    bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const auto options = read_topic(files, "data", "orders");
    ASSERT_FALSE(options) << bit;
    EXPECT_EQ(options.error().tag, "corrupt") << bit;
  }
}

TEST(Topic, names_and_options_are_checked_on_both_sides_of_their_limits) {
  MemoryFiles files;
  for (const std::string name : {"a", "Orders-2_x.y"})
    EXPECT_TRUE(create_topic(files, "d", name, {}));
  EXPECT_TRUE(create_topic(files, "d", std::string(topic_name_bytes_max, 'n'), {}));
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("ä"),
        std::string("a b"), std::string(topic_name_bytes_max + 1, 'n')})
    EXPECT_EQ(create_topic(files, "d", name, {}).error().tag, "name") << name;
  TopicOptions options;
  options.partitions = partitions_max;
  EXPECT_TRUE(create_topic(files, "d", "many", options));
  for (const std::uint32_t partitions : {0u, partitions_max + 1}) {
    options.partitions = partitions;
    EXPECT_EQ(create_topic(files, "d", "bad", options).error().tag, "config");
  }
  options = {};
  options.segment_bytes_max = segment_bytes_least;
  EXPECT_TRUE(create_topic(files, "d", "small", options));
  options.segment_bytes_max = segment_bytes_least - 1;
  EXPECT_EQ(create_topic(files, "d", "bad", options).error().tag, "config");
  options = {};
  options.retention_ms = -2;
  EXPECT_EQ(create_topic(files, "d", "bad", options).error().tag, "config");
}

TEST(Topic, a_second_writer_is_refused_until_the_first_is_gone) {
  Scratch scratch;
  ASSERT_TRUE(once::create_topic(scratch.directory(), "orders", {}));
  auto first = once::open_log_sink(scratch.directory(), "orders");
  ASSERT_TRUE(first);
  EXPECT_EQ(once::open_log_sink(scratch.directory(), "orders").error().tag, "busy");
  EXPECT_EQ(once::delete_topic(scratch.directory(), "orders").error().tag, "busy");
  EXPECT_TRUE(once::create_topic(scratch.directory(), "orders", {}));
  first->reset();
  EXPECT_TRUE(once::open_log_sink(scratch.directory(), "orders"));
}

TEST(Topic, is_listed_and_described_on_a_real_disk) {
  Scratch scratch;
  const std::string directory = scratch.path("deep/data");
  TopicOptions options;
  options.partitions = 2;
  options.segment_bytes_max = segment_bytes_least;
  ASSERT_TRUE(once::create_topic(directory, "orders", options));
  ASSERT_TRUE(once::create_topic(directory, "clicks", {}));
  std::filesystem::create_directories(directory + "/not_a_topic");
  EXPECT_EQ(once::list_topics(directory).value(), (std::vector<std::string>{"clicks", "orders"}));
  {
    auto sink = once::open_log_sink(directory, "orders").value();
    EXPECT_EQ(sink->partitions().value(), 2u);
    const Stamp stamp = sink->enter(1, "p").value();
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(sink->append(1, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    EXPECT_EQ(sink->append(2, {}, texts(0, 1)).error().tag, "partition");
    EXPECT_EQ(sink->enter(2, "p").error().tag, "partition");
    const TopicInfo info = once::describe_topic(directory, "orders").value();
    EXPECT_EQ(info.partitions[1].end_offset, 20);  // while it is written
  }
  const TopicInfo info = once::describe_topic(directory, "orders").value();
  EXPECT_EQ(info.name, "orders");
  EXPECT_EQ(info.options, options);
  ASSERT_EQ(info.partitions.size(), 2u);
  EXPECT_EQ(info.partitions[0].end_offset, 0);
  EXPECT_EQ(info.partitions[1].partition, 1u);
  EXPECT_EQ(info.partitions[1].end_offset, 20);
  EXPECT_EQ(info.partitions[1].producers, 1u);
  EXPECT_GT(info.partitions[1].segments, 2u);
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/orders/1"))
    if (entry.path().extension() == ".log") bytes += entry.file_size();
  EXPECT_EQ(static_cast<std::uintmax_t>(info.partitions[1].bytes), bytes);
  EXPECT_EQ(once::describe_topic(directory, "none").error().tag, "missing");
  EXPECT_EQ(once::list_topics(directory + "/nowhere").error().tag, "missing");
  EXPECT_TRUE(once::delete_topic(directory, "orders"));
  EXPECT_EQ(once::list_topics(directory).value(), std::vector<std::string>{"clicks"});
  EXPECT_FALSE(std::filesystem::exists(directory + "/orders"));
}

}  // namespace
}  // namespace once::log
