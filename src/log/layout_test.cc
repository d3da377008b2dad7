// SPDX-License-Identifier: Apache-2.0
#include "log/layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "log/limits.h"
#include "log/log_testing.h"
#include "log/topic.h"

namespace once::log {
namespace {

using Contents = std::map<std::string, std::string>;

constexpr int message_count = 12;

// A topic of two partitions with several segments each, without a writer.
struct TwoPartitions {
  testing::MemoryFiles files;
  TestClock clock;

  TwoPartitions() {
    TopicOptions options;
    options.partitions = 2;
    options.segment_bytes_max = segment_bytes_least;
    EXPECT_TRUE(create_topic(files, "data", "orders", options));
    auto sink = open_log_sink(files, "data", "orders", clock).value();
    for (std::uint32_t p = 0; p < 2; ++p) {
      const Stamp stamp = sink->enter(p, "p").value();
      for (int i = 0; i < message_count; ++i)
        EXPECT_TRUE(sink->append(p, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    }
  }

  // Reads everything; how many messages there were.
  Result<int> read() {
    auto source = ONCE_TRY(open_log_source(files, "data", "orders", {true}, clock));
    for (int count = 0;;) {
      const Batch batch = ONCE_TRY(source->poll(100, 0));
      if (batch.event == Batch::Event::assigned)
        ONCE_TRY(source->seek(batch.partition, -1));
      else if (batch.event == Batch::Event::end)
        return count;
      count += static_cast<int>(batch.deliveries.size());
    }
  }
};

void erase(Contents& contents, const std::function<bool(const std::string&)>& which) {
  std::erase_if(contents, [&](const auto& file) { return which(file.first); });
}

std::string first_segment() { return segment_path("data/orders/0", 0); }

struct Damage {
  const char* name;
  std::function<void(Contents&)> make;
};

const std::vector<Damage>& damages() {
  static const std::vector<Damage> kinds{
      {"superblock_gone", [](Contents& all) { all.erase("data/orders/0/superblock"); }},
      {"superblock_and_segments_gone",
       [](Contents& all) {
         erase(all, [](const std::string& path) {
           return path.starts_with("data/orders/0/") && !path.ends_with("watermark");
         });
       }},
      {"first_segment_gone", [](Contents& all) { all.erase(first_segment()); }},
      {"all_segments_gone",
       [](Contents& all) {
         erase(all, [](const std::string& path) {
           return path.starts_with("data/orders/0/") && path.ends_with(".log");
         });
       }},
      {"last_segment_gone",
       [](Contents& all) {
         std::string last;
         for (const auto& [path, content] : all)
           if (path.starts_with("data/orders/0/") && path.ends_with(".log")) last = path;
         all.erase(last);
       }},
      {"partition_gone",
       [](Contents& all) {
         erase(all, [](const std::string& path) { return path.starts_with("data/orders/0/"); });
       }},
      {"zeros_behind_a_sealed_segment",
       [](Contents& all) { all[first_segment()].append(100, '\0'); }},
      {"superblock_of_the_other_partition",
       [](Contents& all) { all["data/orders/0/superblock"] = all["data/orders/1/superblock"]; }},
      {"superblock_and_watermark_of_the_other_partition",
       [](Contents& all) {
         for (const char* name : {"superblock", "watermark"})
           all[std::string("data/orders/0/") + name] = all[std::string("data/orders/1/") + name];
       }},
  };
  return kinds;
}

class LayoutOfAPartition : public ::testing::TestWithParam<Damage> {};

// Nobody takes damage for an empty log, or for one whose messages were deleted on purpose.
TEST_P(LayoutOfAPartition, damage_is_called_so_by_readers_and_writers) {
  TwoPartitions topic;
  ASSERT_EQ(topic.read().value(), 2 * message_count);
  Contents damaged = topic.files.contents();
  GetParam().make(damaged);
  topic.files.set_contents(damaged);
  const auto read = topic.read();
  ASSERT_FALSE(read) << *read;
  EXPECT_EQ(read.error().tag, "corrupt") << read.error().text;
  const auto written = open_log_sink(topic.files, "data", "orders", topic.clock);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().tag, "corrupt") << written.error().text;
}

INSTANTIATE_TEST_SUITE_P(Layout, LayoutOfAPartition, ::testing::ValuesIn(damages()),
                         [](const auto& damage) { return std::string(damage.param.name); });

TEST(Layout, a_description_does_not_take_what_is_missing_for_emptiness) {
  for (const Damage& damage : damages()) {
    if (std::string_view(damage.name).starts_with("zeros") ||
        std::string_view(damage.name).starts_with("last"))
      continue;  // inside of segments a description does not look
    TwoPartitions topic;
    Contents damaged = topic.files.contents();
    damage.make(damaged);
    topic.files.set_contents(damaged);
    const auto info = describe_topic(topic.files, "data", "orders");
    ASSERT_FALSE(info) << damage.name;
    EXPECT_EQ(info.error().tag, "corrupt") << damage.name;
  }
}

// What a repair cannot bring back it names; it does not say that all is well.
TEST(Layout, no_damage_is_called_sound_by_a_repair) {
  std::vector<Damage> kinds = damages();
  kinds.push_back({"byte_flipped", [](Contents& all) {
                     std::string& bytes = all[first_segment()];
                     bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
                   }});
  kinds.push_back({"tail_cut", [](Contents& all) {
                     std::string last;
                     for (const auto& [path, content] : all)
                       if (path.starts_with("data/orders/0/") && path.ends_with(".log"))
                         last = path;
                     all[last].resize(all[last].size() - 20);
                   }});
  for (const Damage& damage : kinds) {
    TwoPartitions topic;
    Contents damaged = topic.files.contents();
    damage.make(damaged);
    topic.files.set_contents(damaged);
    const auto found = repair_topic(topic.files, "data", "orders", false, topic.clock);
    if (found) {
      ASSERT_EQ(found->size(), 1u) << damage.name;
      EXPECT_EQ(found->front().partition, 0u) << damage.name;
    } else {
      EXPECT_EQ(found.error().tag, "corrupt") << damage.name;
    }
    Contents after = topic.files.contents();
    after.erase("data/orders/lock");
    damaged.erase("data/orders/lock");
    EXPECT_EQ(after, damaged) << damage.name << ": only looking changes nothing";
  }
}

TEST(Layout, zeros_behind_a_segment_are_repaired_without_a_loss) {
  TwoPartitions topic;
  Contents damaged = topic.files.contents();
  damaged[first_segment()].append(100, '\0');
  topic.files.set_contents(damaged);
  const auto repairs = repair_topic(topic.files, "data", "orders", true, topic.clock).value();
  ASSERT_EQ(repairs.size(), 1u);
  EXPECT_EQ(repairs[0], (PartitionRepair{0, 0, message_count, 0, false, 100}));
  EXPECT_EQ(topic.read().value(), 2 * message_count);
  EXPECT_TRUE(open_log_sink(topic.files, "data", "orders", topic.clock));
}

TEST(Layout, what_retention_deleted_is_no_damage_even_if_some_of_it_is_left) {
  TwoPartitions topic;
  const Contents whole = topic.files.contents();
  Superblock superblock = read_superblock(topic.files, "data/orders/0").value();
  const auto segments = list_segments(topic.files, "data/orders/0").value();
  ASSERT_GE(segments.size(), 3u);
  superblock.first_offset = segments[2];
  ++superblock.generation;
  ASSERT_TRUE(update_superblock(topic.files, "data/orders/0", superblock));
  const int left = 2 * message_count - static_cast<int>(segments[2]);
  EXPECT_EQ(topic.read().value(), left);
  ASSERT_TRUE(topic.files.remove(segment_path("data/orders/0", segments[0])));
  EXPECT_EQ(topic.read().value(), left);
  EXPECT_TRUE(open_log_sink(topic.files, "data", "orders", topic.clock));
  EXPECT_EQ(topic.read().value(), left);
}

TEST(Layout, a_topic_that_was_never_written_is_empty) {
  testing::MemoryFiles files;
  TestClock clock;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  EXPECT_EQ(describe_topic(files, "data", "orders").value().partitions[0].end_offset, 0);
  EXPECT_EQ(read_layout(files, "data/orders/0").error().tag, "missing");
}

}  // namespace
}  // namespace once::log
