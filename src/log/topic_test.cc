// SPDX-License-Identifier: Apache-2.0
#include "log/topic.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
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
  EXPECT_EQ(delete_topic(files, "data", "orders").error().tag, "corrupt");
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
    const Stamp stamp = sink->producers()->enter(1, "p").value();
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(sink->append(1, after(stamp, static_cast<std::uint64_t>(i)), texts(i, i + 1)));
    EXPECT_EQ(sink->append(2, {}, texts(0, 1)).error().tag, "partition");
    EXPECT_EQ(sink->producers()->enter(2, "p").error().tag, "partition");
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

// --- identity

TEST(Topic, has_an_id_of_its_own_that_it_keeps_until_it_is_deleted) {
  MemoryFiles files;
  TestClock clock;
  const auto id = [&] { return describe_topic(files, "data", "orders").value().id; };
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  const std::string first = id();
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos) << first;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock).value()->append(0, {}, texts(0, 1)));
  EXPECT_EQ(id(), first);
  EXPECT_EQ(open_log_source(files, "data", "orders", {}, clock).value()->traits().identity, first);
  ASSERT_TRUE(create_topic(files, "data", "clicks", {}));
  EXPECT_NE(describe_topic(files, "data", "clicks").value().id, first);
  ASSERT_TRUE(delete_topic(files, "data", "orders"));
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  EXPECT_NE(id(), first);
}

TEST(Topic, of_an_older_version_has_no_id_until_it_is_written) {
  MemoryFiles files;
  TestClock clock;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  const std::string line =
      R"({"version":1,"partitions":1,"segment_bytes_max":67108864,"retention_ms":-1,)"
      R"("retention_bytes":-1,"gaps":"refuse"})"
      "\n";
  files.content("data/orders/topic") = fmt::format("{}crc32c {:08x}\n", line, crc32c(line));
  EXPECT_EQ(read_topic(files, "data", "orders").value(), TopicFile{});
  EXPECT_EQ(open_log_source(files, "data", "orders", {}, clock).value()->traits().identity, "");
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock));
  const TopicFile written = read_topic(files, "data", "orders").value();
  EXPECT_EQ(written.id.size(), 32u);
  EXPECT_TRUE(written.is_written);
  ASSERT_TRUE(open_log_sink(files, "data", "orders", clock));
  EXPECT_EQ(read_topic(files, "data", "orders").value(), written);
}

// --- deletion

std::map<std::string, std::string> everything_below(const std::string& directory) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (entry.is_symlink())
      found[path] = "link to " + std::filesystem::read_symlink(entry.path()).string();
    else if (entry.is_directory())
      found[path] = "directory";
    else
      found[path] = read_file(system_files(), path).value();
  }
  return found;
}

void write_note(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  ASSERT_TRUE(replace_file(system_files(), path, "a note"));
}

void replace_by_link(const std::string& path, const std::string& elsewhere) {
  std::filesystem::rename(path, elsewhere);
  std::filesystem::create_symlink(elsewhere, path);
}

TEST(Topic, deletes_only_what_it_made_and_follows_no_link) {
  struct Case {
    const char* what;
    std::function<void(const std::string& topic, const Scratch& scratch)> make;
  };
  const std::vector<Case> cases{
      {"a directory of digits",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/2023/report"); }},
      {"a partition that it does not have",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/2/superblock"); }},
      {"a partition with a leading zero",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/00/superblock"); }},
      {"a note beside the partitions",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/README"); }},
      {"a note beside the segments",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/1/README"); }},
      {"a directory among the segments",
       [](const std::string& topic, const Scratch&) { write_note(topic + "/1/old/x.log"); }},
      {"a link in place of a partition",
       [](const std::string& topic, const Scratch& scratch) {
         replace_by_link(topic + "/1", scratch.path("elsewhere"));
       }},
      {"a link in place of a segment",
       [](const std::string& topic, const Scratch& scratch) {
         replace_by_link(segment_path(topic + "/1", 0), scratch.path("elsewhere"));
       }},
      {"a link in place of the topic",
       [](const std::string& topic, const Scratch& scratch) {
         replace_by_link(topic, scratch.path("elsewhere"));
       }},
  };
  for (const Case& one : cases) {
    Scratch scratch;
    const std::string directory = scratch.path("data");
    TopicOptions options;
    options.partitions = 2;
    ASSERT_TRUE(once::create_topic(directory, "orders", options));
    ASSERT_TRUE(once::open_log_sink(directory, "orders").value()->append(1, {}, texts(0, 2)));
    one.make(directory + "/orders", scratch);
    const auto before = everything_below(scratch.directory());
    const auto deleted = once::delete_topic(directory, "orders");
    ASSERT_FALSE(deleted) << one.what;
    EXPECT_EQ(deleted.error().tag, "foreign") << one.what << ": " << deleted.error().text;
    EXPECT_EQ(everything_below(scratch.directory()), before) << one.what;
  }
}

TEST(Topic, a_writer_does_not_follow_a_link_in_place_of_a_file) {
  for (const char* name : {"lock", "1/superblock", "1/watermark", "1/00000000000000000000.log"}) {
    Scratch scratch;
    TopicOptions options;
    options.partitions = 2;
    ASSERT_TRUE(once::create_topic(scratch.path("data"), "orders", options));
    ASSERT_TRUE(once::open_log_sink(scratch.path("data"), "orders"));
    replace_by_link(scratch.path("data/orders/") + name, scratch.path("elsewhere"));
    const auto before = everything_below(scratch.directory());
    auto sink = once::open_log_sink(scratch.path("data"), "orders");
    ASSERT_FALSE(sink) << name;
    EXPECT_EQ(sink.error().tag, "link") << name << ": " << sink.error().text;
    EXPECT_EQ(everything_below(scratch.directory()), before) << name;
  }
}

// A file system in which one directory may not be looked into.
class Forbidding final : public Files {
 public:
  Forbidding(Files& files, std::string forbidden)
      : files_(files), forbidden_(std::move(forbidden)) {}

  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode) override {
    if (path.starts_with(forbidden_)) return fail(error_from_errno(EACCES, "open", path));
    return files_.open(path, mode);
  }
  Result<std::vector<DirectoryEntry>> entries(const std::string& directory) override {
    if (directory.starts_with(forbidden_)) return fail(error_from_errno(EACCES, "list", directory));
    return files_.entries(directory);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return files_.rename(from, to);
  }
  Status remove(const std::string& path) override { return files_.remove(path); }
  Status sync_directory(const std::string& directory) override {
    return files_.sync_directory(directory);
  }

 private:
  Files& files_;
  const std::string forbidden_;
};

TEST(Topic, without_the_right_to_look_it_is_neither_gone_nor_absent) {
  MemoryFiles files;
  ASSERT_TRUE(create_topic(files, "data", "orders", {}));
  const auto before = files.contents();
  for (const char* where : {"data", "data/orders"}) {
    Forbidding forbidding(files, where);
    EXPECT_EQ(delete_topic(forbidding, "data", "orders").error().tag, "denied") << where;
    EXPECT_EQ(list_topics(forbidding, "data").error().tag, "denied") << where;
    EXPECT_EQ(describe_topic(forbidding, "data", "orders").error().tag, "denied") << where;
  }
  Forbidding partition(files, "data/orders/0");
  EXPECT_EQ(list_topics(partition, "data").value(), std::vector<std::string>{"orders"});
  EXPECT_EQ(files.contents(), before);
}

TEST(Topic, is_made_for_its_owner_alone_whatever_the_umask_allows) {
  Scratch scratch;
  const mode_t umask_before = ::umask(0);
  const auto made = once::create_topic(scratch.path("data"), "orders", {});
  const auto sink = once::open_log_sink(scratch.path("data"), "orders");
  ::umask(umask_before);
  ASSERT_TRUE(made);
  ASSERT_TRUE(sink);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.directory())) {
    const auto rights = static_cast<unsigned>(entry.status().permissions());
    EXPECT_EQ(rights, entry.is_directory() ? 0700u : 0600u) << entry.path();
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 5);  // topic, lock, superblock, watermark and a segment
}

}  // namespace
}  // namespace once::log
