// SPDX-License-Identifier: Apache-2.0
#include "log/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
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
      const Stamp stamp = sink->producers()->enter(p, "p").value();
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
        ONCE_TRY(source->replay()->seek(batch.partition, -1));
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
    TwoPartitions topic;
    Contents damaged = topic.files.contents();
    damage.make(damaged);
    topic.files.set_contents(damaged);
    const auto info = describe_topic(topic.files, "data", "orders");
    ASSERT_FALSE(info) << damage.name;
    EXPECT_EQ(info.error().tag, "corrupt") << damage.name;
  }
}

std::vector<Damage> damages_to_repair() {
  const auto segments_of = [](const Contents& all) {
    std::vector<std::string> paths;
    for (const auto& [path, content] : all)
      if (path.starts_with("data/orders/0/") && path.ends_with(".log")) paths.push_back(path);
    return paths;
  };
  const auto flip = [](std::string& bytes) {
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  };
  std::vector<Damage> kinds = damages();
  kinds.push_back({"byte_flipped", [=](Contents& all) { flip(all[first_segment()]); }});
  kinds.push_back(
      {"byte_flipped_at_the_end", [=](Contents& all) { flip(all[segments_of(all).back()]); }});
  kinds.push_back({"tail_cut", [=](Contents& all) {
                     std::string& last = all[segments_of(all).back()];
                     last.resize(last.size() - 20);
                   }});
  kinds.push_back(
      {"segment_in_the_middle_gone", [=](Contents& all) { all.erase(segments_of(all).at(1)); }});
  kinds.push_back({"first_frame_of_all_segments", [=](Contents& all) {
                     for (const std::string& path : segments_of(all)) all[path][20] ^= 1;
                   }});
  kinds.push_back({"superblock_overwritten", [](Contents& all) {
                     std::string& bytes = all["data/orders/0/superblock"];
                     bytes.assign(bytes.size(), 'x');
                   }});
  return kinds;
}

class RepairOfAPartition : public ::testing::TestWithParam<Damage> {
 protected:
  void SetUp() override {
    damaged_ = topic_.files.contents();
    GetParam().make(damaged_);
    topic_.files.set_contents(damaged_);
    id_ = read_topic(topic_.files, "data", "orders")->id;
  }
  Result<TopicRepair> repair(bool apply) {
    return repair_topic(topic_.files, "data", "orders", apply, topic_.clock);
  }

  TwoPartitions topic_;
  Contents damaged_;
  std::string id_;
};

TEST_P(RepairOfAPartition, only_looking_changes_nothing_and_does_not_call_it_sound) {
  const auto found = repair(false);
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->partitions.size(), 1u);
  EXPECT_EQ(found->partitions[0].partition, 0u);
  Contents after = topic_.files.contents();
  after.erase("data/orders/lock");
  damaged_.erase("data/orders/lock");
  EXPECT_EQ(after, damaged_);
}

TEST_P(RepairOfAPartition, keeps_what_is_sound_says_what_is_lost_and_deletes_nothing) {
  const TopicRepair planned = repair(false).value();
  const auto done = repair(true);
  ASSERT_TRUE(done) << done.error().text;
  ASSERT_EQ(done->partitions.size(), 1u);
  const PartitionRepair& made = done->partitions[0];
  EXPECT_EQ(made.lost, planned.partitions[0].lost);
  // What is told is what can be read afterwards, and each message is lost or there.
  const auto kept = topic_.read();
  ASSERT_TRUE(kept) << kept.error().text;
  EXPECT_EQ(*kept, message_count + made.end_offset - made.first_offset);
  std::int64_t lost = 0;
  for (const OffsetRange& range : made.lost) lost += range.end - range.first;
  EXPECT_EQ(lost, made.lost_count);
  const bool is_known = made.damage.find("is not known") == std::string::npos;
  EXPECT_EQ(is_known ? *kept + lost : 2 * message_count, 2 * message_count) << made.damage;
  // Numbers that are given again are those of another topic.
  const bool continues = made.end_offset == message_count && !made.forgets_producers;
  const std::string id = read_topic(topic_.files, "data", "orders")->id;
  if (!continues) {
    EXPECT_TRUE(id != id_ || made.first_offset == message_count);
  }
  EXPECT_EQ(id != id_, done->renews_identity);
  for (const auto& [path, content] : damaged_) {
    if (!path.ends_with(".log")) continue;
    const Contents after = topic_.files.contents();
    const bool is_there = std::any_of(after.begin(), after.end(), [&, &was = content](auto& now) {
      return now.second == was || was == now.second + std::string(100, '\0');
    });
    EXPECT_TRUE(is_there) << path;
  }
  // It is written as before.
  {
    auto sink = open_log_sink(topic_.files, "data", "orders", topic_.clock);
    ASSERT_TRUE(sink) << sink.error().text;
    const Stamp stamp = (*sink)->producers()->enter(0, "p").value();
    EXPECT_EQ((*sink)->append(0, stamp, texts(12, 13))->offset, made.end_offset);
  }
  EXPECT_EQ(topic_.read().value(), *kept + 1);
  EXPECT_FALSE(repair(true)->is_needed());
  EXPECT_TRUE(delete_topic(topic_.files, "data", "orders")) << "what was set aside is its own";
}

INSTANTIATE_TEST_SUITE_P(Layout, RepairOfAPartition, ::testing::ValuesIn(damages_to_repair()),
                         [](const auto& damage) { return std::string(damage.param.name); });

TEST(Layout, a_topic_without_its_file_is_damaged_to_every_command_and_can_be_repaired) {
  for (const bool emptied : {false, true}) {
    TwoPartitions topic;
    Contents damaged = topic.files.contents();
    if (emptied)
      damaged["data/orders/topic"].clear();
    else
      damaged.erase("data/orders/topic");
    topic.files.set_contents(damaged);
    const auto tag = [](const auto& answer) { return answer ? "" : answer.error().tag; };
    EXPECT_EQ(tag(read_topic(topic.files, "data", "orders")), "corrupt");
    EXPECT_EQ(tag(inspect_topic(topic.files, "data", "orders")), "corrupt");
    EXPECT_EQ(tag(topic.read()), "corrupt");
    EXPECT_EQ(tag(open_log_sink(topic.files, "data", "orders", topic.clock)), "corrupt");
    EXPECT_EQ(tag(create_topic(topic.files, "data", "orders", {})), "corrupt");
    if (!emptied) {
      EXPECT_EQ(tag(delete_topic(topic.files, "data", "orders")), "corrupt");
    }
    EXPECT_EQ(list_topics(topic.files, "data").value(), (std::vector<std::string>{"orders"}));
    const auto repair = repair_topic(topic.files, "data", "orders", true, topic.clock);
    ASSERT_TRUE(repair) << repair.error().text;
    EXPECT_TRUE(repair->resets_options && repair->renews_identity);
    EXPECT_TRUE(repair->partitions.empty());
    EXPECT_EQ(topic.read().value(), 2 * message_count);
    EXPECT_TRUE(open_log_sink(topic.files, "data", "orders", topic.clock));
  }
}

TEST(Layout, zeros_behind_a_segment_are_repaired_without_a_loss) {
  TwoPartitions topic;
  Contents damaged = topic.files.contents();
  damaged[first_segment()].append(100, '\0');
  topic.files.set_contents(damaged);
  const auto repairs = repair_topic(topic.files, "data", "orders", true, topic.clock)->partitions;
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
