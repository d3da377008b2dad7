// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <vector>

#include "testing/scratch.h"

namespace once {
namespace {

using testing::Scratch;

TEST(File, reads_what_was_written_in_parts_of_any_number) {
  Scratch scratch;
  auto file = system_files().open(scratch.path("a/b/c"), OpenMode::create).value();
  std::vector<std::string> texts;
  std::string whole;
  for (int i = 0; i < 200; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26)));
    whole += texts.back();
  }
  const std::vector<std::string_view> parts(texts.begin(), texts.end());
  ASSERT_TRUE(file->write_at(0, parts));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(file->size().value(), static_cast<std::int64_t>(whole.size()));
  EXPECT_EQ(read_file(system_files(), scratch.path("a/b/c")).value(), whole);
}

TEST(File, is_created_only_once) {
  Scratch scratch;
  ASSERT_TRUE(system_files().open(scratch.path("x"), OpenMode::create));
  EXPECT_EQ(system_files().open(scratch.path("x"), OpenMode::create).error().tag, "exists");
}

TEST(File, lock_is_held_by_one_opener_until_closed) {
  Scratch scratch;
  auto first = system_files().open(scratch.path("lock"), OpenMode::lock);
  ASSERT_TRUE(first);
  EXPECT_EQ(system_files().open(scratch.path("lock"), OpenMode::lock).error().tag, "busy");
  first->reset();
  EXPECT_TRUE(system_files().open(scratch.path("lock"), OpenMode::lock));
}

TEST(File, replacing_leaves_only_the_new_content) {
  Scratch scratch;
  ASSERT_TRUE(replace_file(system_files(), scratch.path("f"), "a long first content"));
  ASSERT_TRUE(replace_file(system_files(), scratch.path("f"), "second"));
  EXPECT_EQ(read_file(system_files(), scratch.path("f")).value(), "second");
  EXPECT_EQ(system_files().list(scratch.path(".")).value(), std::vector<std::string>{"f"});
}

TEST(File, errors_say_what_where_and_what_to_do) {
  const Error full = error_from_errno(ENOSPC, "write", "/data/x");
  EXPECT_EQ(full.remedy, Remedy::retry);
  EXPECT_EQ(full.tag, "full");
  EXPECT_NE(full.text.find("/data/x"), std::string::npos);
  EXPECT_EQ(error_from_errno(EIO, "sync", "f").remedy, Remedy::recheck);
  EXPECT_EQ(error_from_errno(EACCES, "open", "f").remedy, Remedy::stop);
  EXPECT_EQ(error_from_errno(EMFILE, "open", "f").remedy, Remedy::retry);
}

TEST(File, what_is_not_a_regular_file_is_refused_without_waiting_for_anybody) {
  Scratch scratch;
  ASSERT_EQ(::mkfifo(scratch.path("fifo").c_str(), 0600), 0);
  for (const OpenMode mode : {OpenMode::read, OpenMode::write, OpenMode::lock})
    EXPECT_EQ(system_files().open(scratch.path("fifo"), mode).error().tag, "foreign");
  EXPECT_EQ(system_files().open(scratch.path(""), OpenMode::read).error().tag, "foreign");
  EXPECT_EQ(system_files().open("/dev/zero", OpenMode::read).error().tag, "foreign");
}

TEST(File, small_file_is_read_up_to_its_limit_and_refused_beyond_it) {
  Scratch scratch;
  auto file = system_files().open(scratch.path("x"), OpenMode::create).value();
  const std::string_view content = "12345";
  ASSERT_TRUE(file->write_at(0, std::span(&content, 1)));
  EXPECT_EQ(read_file(system_files(), scratch.path("x"), 5).value(), "12345");
  EXPECT_EQ(read_file(system_files(), scratch.path("x"), 4).error().tag, "foreign");
}

TEST(File, new_files_and_directories_are_for_their_owner_only) {
  Scratch scratch;
  const mode_t old = ::umask(0);
  ASSERT_TRUE(system_files().open(scratch.path("d/x"), OpenMode::create));
  ASSERT_TRUE(system_files().open(scratch.path("d/lock"), OpenMode::lock));
  ::umask(old);
  const auto rights = [&](const std::string& name) {
    struct stat status {};
    EXPECT_EQ(::stat(scratch.path(name).c_str(), &status), 0);
    return status.st_mode & 0777;
  };
  EXPECT_EQ(rights("d"), 0700u);
  EXPECT_EQ(rights("d/x"), 0600u);
  EXPECT_EQ(rights("d/lock"), 0600u);
}

}  // namespace
}  // namespace once
