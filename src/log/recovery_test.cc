// SPDX-License-Identifier: Apache-2.0
#include "log/recovery.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "log/limits.h"
#include "log/log_testing.h"

namespace once::log {
namespace {

using Contents = std::map<std::string, std::string>;

// A small log of several segments, and what it holds.
struct SmallLog {
  Bench bench;
  Contents contents;
  std::vector<std::string> messages;

  // Without `closed` it is as after a crash, and without `watermark` as after a power cut.
  explicit SmallLog(bool closed, bool watermark) {
    bench.options.segment_bytes_max = segment_bytes_least;
    auto partition = bench.open();
    const Stamp stamp = partition->enter("p").value();
    for (int i = 0; i < 12; i += 2) {
      auto some = texts(i, i + 2);
      *some[0].body += std::string(200, 'x');
      for (const Message& message : some) messages.push_back(*message.body);
      EXPECT_TRUE(append(*partition, after(stamp, static_cast<std::uint64_t>(i)), some));
    }
    EXPECT_GT(partition->info().segments, 1u);
    if (closed) {
      EXPECT_TRUE(partition->close());
    }
    partition.reset();
    contents = bench.files.contents();
    if (!watermark) contents.erase(bench.path("watermark"));
  }

  // Opens and reads everything with these files. Empty: damage was found.
  std::vector<std::string> found(const Contents& damaged) {
    bench.files.set_contents(damaged);
    auto partition = bench.try_open();
    if (!partition) {
      tag = partition.error().tag;
      return {};
    }
    auto read = try_read_all(**partition);
    if (!read) tag = read.error().tag;
    return read ? *read : std::vector<std::string>{};
  }
  std::string tag;

  std::string last_segment() const {
    std::string last;
    for (const auto& [path, content] : contents)
      if (path.ends_with(".log")) last = path;
    return last;
  }
};

std::size_t content_end(const std::string& bytes) {
  std::size_t end = bytes.size();
  while (end > 0 && bytes[end - 1] == 0) --end;
  return end;
}

TEST(Recovery, every_flipped_bit_of_a_log_is_found_or_harmless) {
  for (const bool closed : {true, false}) {
    SmallLog log(closed, true);
    ASSERT_EQ(log.found(log.contents), log.messages);
    for (const auto& [path, good] : log.contents) {
      // All of the frames, and a part of the reserved space behind them; not each bit of the void
      // between the copies of the superblock.
      const std::size_t bytes = std::min(good.size(), content_end(good) + 40);
      for (std::size_t bit = 0; bit < bytes * 8; ++bit) {
        if (good[bit / 8] == 0 && path.ends_with("superblock") && bit % 37 != 0) continue;
        Contents damaged = log.contents;
        std::string& bad = damaged[path];
        bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
        log.tag.clear();
        const auto found = log.found(damaged);
        if (found == log.messages) continue;
        ASSERT_TRUE(found.empty()) << path << " bit " << bit << ": " << found.size();
        ASSERT_TRUE(log.tag == "corrupt" || log.tag == "version")
            << path << " bit " << bit << ": " << log.tag;
      }
    }
  }
}

// A power cut can lose the watermark file, and the superblock is behind: only the frames are left
// to tell that the last group was durable.
TEST(Recovery, every_flipped_bit_of_the_last_group_is_found_without_any_watermark) {
  SmallLog log(false, false);
  ASSERT_EQ(log.found(log.contents), log.messages);
  const std::string path = log.last_segment();
  const std::string& good = log.contents.at(path);
  for (std::size_t bit = 0; bit < content_end(good) * 8; ++bit) {
    Contents damaged = log.contents;
    std::string& bad = damaged[path];
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_TRUE(log.found(damaged).empty()) << "bit " << bit;
    ASSERT_EQ(log.tag, "corrupt") << "bit " << bit;
  }
}

TEST(Recovery, corruption_names_file_and_byte_and_changes_nothing) {
  SmallLog log(false, true);
  const std::string path = log.last_segment();
  Contents damaged = log.contents;
  damaged[path][300] = static_cast<char>(damaged[path][300] ^ 1);
  log.bench.files.set_contents(damaged);
  const auto opened = log.bench.try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().remedy, Remedy::stop);
  EXPECT_EQ(opened.error().tag, "corrupt");
  EXPECT_NE(opened.error().text.find(path), std::string::npos);
  EXPECT_NE(opened.error().text.find("at byte"), std::string::npos);
  EXPECT_EQ(log.bench.files.contents(), damaged);
}

TEST(Recovery, a_log_cut_off_at_any_byte_is_damage_while_a_watermark_is_left) {
  for (const bool closed : {true, false}) {
    SmallLog log(closed, true);
    for (const auto& [path, good] : log.contents) {
      for (std::size_t length = 0; length < good.size(); length += 1 + length / 64) {
        Contents damaged = log.contents;
        damaged[path].resize(length);
        const auto found = log.found(damaged);
        ASSERT_TRUE(found == log.messages || (found.empty() && log.tag == "corrupt"))
            << path << " cut to " << length << ": " << log.tag;
        if (path.ends_with(".log") && length < content_end(good)) {
          ASSERT_TRUE(found.empty()) << path << " cut to " << length;
        }
      }
    }
  }
}

// The last group of a log whose sync never returned, torn in every way a disk can tear it.
struct TornLog {
  Bench bench;
  Contents before;  // before the last group
  Contents after;   // with all of it
  std::string path;
  std::size_t begin = 0;  // of the last group
  std::size_t end = 0;
  std::vector<std::string> durable = bodies(0, 3);
  std::vector<std::string> all = bodies(0, 3);

  TornLog() {
    bench.options.segment_bytes_max = 64 << 10;
    auto partition = bench.open();
    const Stamp stamp = partition->enter("p").value();
    EXPECT_TRUE(append(*partition, stamp, texts(0, 3)));
    path = bench.segment(0);
    before = bench.files.contents();
    begin = content_end(before[path]);
    // Three frames of two producers, one of them with sectors that are zero on purpose.
    const Stamp other = {0, 0, 0};
    auto zeros = texts(100, 101);
    zeros[0].body = std::string(2000, '\0') + "end";
    EXPECT_TRUE(partition->stage(after_sequence(stamp), texts(3, 5)));
    EXPECT_TRUE(partition->stage(other, zeros));
    EXPECT_TRUE(partition->stage({stamp.producer, stamp.epoch, 5}, texts(5, 7)));
    EXPECT_TRUE(partition->sync());
    all.push_back("m3");
    all.push_back("m4");
    all.push_back(*zeros[0].body);
    all.push_back("m5");
    all.push_back("m6");
    after = bench.files.contents();
    end = content_end(after[path]);
    // The group was written, but nobody was told: the watermark is that of before.
    after[bench.path("watermark")] = before[bench.path("watermark")];
  }
  static Stamp after_sequence(Stamp stamp) {
    stamp.sequence = 3;
    return stamp;
  }

  // What is found is all that was durable and then a beginning of the last group.
  void expect_prefix(const Contents& torn, const std::string& what) {
    bench.files.set_contents(torn);
    auto partition = bench.try_open();
    ASSERT_TRUE(partition) << what << ": " << partition.error().text;
    const auto found = read_all(**partition);
    ASSERT_GE(found.size(), durable.size()) << what;
    ASSERT_LE(found.size(), all.size()) << what;
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], all[i]) << what;
    // It can be written on, and opened once more.
    const Stamp stamp = (*partition)->enter("next").value();
    ASSERT_TRUE(append(**partition, stamp, texts(0, 1))) << what;
    partition->reset();
    auto again = bench.try_open();
    ASSERT_TRUE(again) << what << ": " << again.error().text;
    ASSERT_EQ(read_all(**again).size(), found.size() + 1) << what;
  }
};

TEST(Recovery, a_torn_tail_is_cut_wherever_it_ends) {
  TornLog log;
  for (std::size_t length = log.begin; length <= log.end; ++length) {
    Contents torn = log.after;
    torn[log.path].resize(length);
    log.expect_prefix(torn, "cut at " + std::to_string(length));
    Contents zeroed = log.after;
    std::string& bytes = zeroed[log.path];
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(length), bytes.end(), '\0');
    log.expect_prefix(zeroed, "zero from " + std::to_string(length));
    if (HasFatalFailure()) return;
  }
}

TEST(Recovery, a_torn_tail_is_cut_whichever_sectors_of_it_are_missing) {
  TornLog log;
  const std::size_t first = log.begin / 512;
  const std::size_t count = (log.end - 1) / 512 - first + 1;
  ASSERT_LE(count, 12u);
  for (std::size_t mask = 0; mask < (std::size_t{1} << count); ++mask) {
    Contents torn = log.after;
    std::string& bytes = torn[log.path];
    const std::string& old = log.before[log.path];
    for (std::size_t i = 0; i < count; ++i) {
      if ((mask >> i & 1) != 0) continue;
      for (std::size_t at = (first + i) * 512; at < std::min((first + i + 1) * 512, bytes.size());
           ++at)
        bytes[at] = at < old.size() ? old[at] : '\0';
    }
    log.expect_prefix(torn, "sectors " + std::to_string(mask));
    if (HasFatalFailure()) return;
  }
}

TEST(Recovery, a_body_with_zero_sectors_does_not_hide_a_flipped_bit) {
  TornLog log;
  std::size_t at = log.after[log.path].find("end", log.begin);
  ASSERT_NE(at, std::string::npos);
  Contents damaged = log.after;
  damaged[log.path][at] ^= 1;
  log.bench.files.set_contents(damaged);
  EXPECT_EQ(log.bench.try_open().error().tag, "corrupt");
}

TEST(Recovery, a_foreign_file_in_place_of_a_segment_is_refused) {
  Bench bench;
  bench.open().reset();
  bench.files.content(bench.segment(0)) = "this is not a log\n" + std::string(1000, 'x');
  EXPECT_EQ(bench.try_open().error().tag, "corrupt");
}

TEST(Recovery, a_segment_of_another_log_is_refused) {
  Bench first;
  ASSERT_TRUE(append(*first.open(), {}, texts(0, 3)));
  Bench second;
  second.drawn = 77;
  ASSERT_TRUE(append(*second.open(), {}, texts(0, 3)));
  second.files.content(second.segment(0)) = first.files.content(first.segment(0));
  EXPECT_EQ(second.try_open().error().tag, "corrupt");
}

TEST(Recovery, an_older_copy_of_a_segment_is_refused) {
  Bench bench;
  auto partition = bench.open();
  ASSERT_TRUE(append(*partition, {}, texts(0, 3)));
  const std::string old = bench.files.content(bench.segment(0));
  ASSERT_TRUE(append(*partition, {}, texts(3, 6)));
  partition.reset();
  bench.files.content(bench.segment(0)) = old;
  EXPECT_EQ(bench.try_open().error().tag, "corrupt");
}

TEST(Recovery, a_missing_segment_is_refused_first_middle_or_last) {
  SmallLog log(true, true);
  int segments = 0;
  for (const auto& [path, content] : log.contents) {
    if (!path.ends_with(".log")) continue;
    ++segments;
    Contents damaged = log.contents;
    damaged.erase(path);
    EXPECT_TRUE(log.found(damaged).empty()) << path;
    EXPECT_EQ(log.tag, "corrupt") << path;
  }
  EXPECT_GE(segments, 3);
}

TEST(Recovery, a_missing_superblock_stops_and_deletes_nothing) {
  SmallLog log(true, true);
  Contents damaged = log.contents;
  damaged.erase(log.bench.path("superblock"));
  EXPECT_TRUE(log.found(damaged).empty());
  EXPECT_EQ(log.tag, "corrupt");
  EXPECT_EQ(log.bench.files.contents(), damaged);
}

TEST(Recovery, other_files_in_the_directory_do_not_matter) {
  SmallLog log(true, true);
  Contents with_more = log.contents;
  with_more[log.bench.path("notes.txt")] = "hello";
  with_more[log.bench.path("1.log")] = "not a segment: too few digits";
  EXPECT_EQ(log.found(with_more), log.messages);
}

TEST(Recovery, a_version_that_is_not_known_is_told_from_damage) {
  Bench bench;
  bench.open().reset();
  // Write the superblock with a larger version number and a correct checksum, as the next
  // release would.
  const auto with_version = [](std::string copy) {
    put_u32(copy.data() + 8, 2);
    put_u32(copy.data() + 60, crc32c(std::string_view(copy).substr(0, 60)));
    return copy;
  };
  std::string& content = bench.files.content(bench.path("superblock"));
  content.replace(0, 64, with_version(content.substr(0, 64)));
  content.replace(4096, 64, with_version(content.substr(4096, 64)));
  EXPECT_EQ(bench.try_open().error().tag, "version");
}

TEST(Recovery, a_frame_of_a_later_version_stops_and_is_not_cut) {
  Bench bench;
  ASSERT_TRUE(append(*bench.open(), {}, texts(0, 2)));
  std::string& content = bench.files.content(bench.segment(0));
  for (const std::size_t frame : {std::size_t{108}, std::size_t{0}}) {
    content[frame + 4] = 4;
    put_u32(content.data() + frame + 84, crc32c({content.data() + frame, 84}));
    const auto before = bench.files.contents();
    EXPECT_EQ(bench.try_open().error().tag, "version");
    EXPECT_EQ(bench.files.contents(), before);
  }
}

TEST(Recovery, an_unfinished_roll_is_undone_however_far_it_came) {
  SmallLog log(false, true);
  const std::string path = log.last_segment();
  const std::string& last = log.contents.at(path);
  const std::int64_t base = std::stoll(path.substr(path.size() - 24, 20));
  const std::vector<std::string> before(log.messages.begin(), log.messages.begin() + base);
  // The first frame of the new segment was not yet durable, so nobody knows of anything in it.
  Contents rolling = log.contents;
  rolling.erase(log.bench.path("watermark"));
  const std::size_t snapshot = decode_frame_header(last).header.frame_bytes();
  for (std::size_t length = 0; length < snapshot; ++length) {
    for (const bool reserved : {false, true}) {
      Contents torn = rolling;
      torn[path] = last.substr(0, length);
      if (reserved) torn[path].resize(4096);
      // The superblock is written after the new segment is durable.
      Superblock superblock = read_superblock(log.bench.files, log.bench.directory).value();
      superblock.durable = {};
      torn.erase(log.bench.path("superblock"));
      log.bench.files.set_contents(torn);
      ASSERT_TRUE(create_superblock(log.bench.files, log.bench.directory, superblock));
      ASSERT_EQ(log.found(log.bench.files.contents()), before) << length << " " << log.tag;
    }
  }
}

TEST(Recovery, indexes_are_made_again_when_they_are_missing_or_bad) {
  SmallLog log(true, true);
  Contents damaged = log.contents;
  int indexes = 0;
  for (auto& [path, content] : damaged) {
    if (!path.ends_with(".index")) continue;
    content = ++indexes % 2 == 0 ? "" : "garbage";
  }
  EXPECT_GE(indexes, 2);
  EXPECT_EQ(log.found(damaged), log.messages);
  for (const auto& [path, content] : log.contents)
    if (path.ends_with(".index")) {
      EXPECT_EQ(log.bench.files.content(path), content) << path;
    }
}

}  // namespace
}  // namespace once::log
