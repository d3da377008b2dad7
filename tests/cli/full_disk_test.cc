// SPDX-License-Identifier: Apache-2.0
// `once run` when the disk of its store, its source and its destination is full: it says so, waits,
// and goes on when there is space, without a restart.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "run_bank.h"

namespace once::testing {
namespace {

class RunFullDisk : public RunBank {
 protected:
  // A small file system, which only root can have.
  void SetUp() override {
    if (::mount("tmpfs", scratch_.directory().c_str(), "tmpfs", 0, "size=8m,mode=755") != 0)
      GTEST_SKIP() << "a file system of its own: " << std::strerror(errno);
    is_mounted_ = true;
    RunBank::SetUp();
  }
  void TearDown() override {
    RunBank::TearDown();
    if (!is_mounted_) return;
    EXPECT_EQ(::umount2(scratch_.directory().c_str(), MNT_DETACH), 0);
  }

  void fill_disk() {
    std::ofstream ballast(scratch_.path("ballast"), std::ios::binary);
    for (const std::size_t piece : {std::size_t{1} << 16, std::size_t{1}})
      for (ballast.clear();
           ballast.write(std::string(piece, 'x').data(), static_cast<std::streamsize>(piece))
               .flush();)
        continue;
    EXPECT_EQ(std::filesystem::space(scratch_.directory()).available, 0u);
  }
  void free_disk() { std::filesystem::remove(scratch_.path("ballast")); }
  bool has_effects(std::size_t count) {
    return sql("SELECT count(*) FROM flow") == Lines{std::to_string(count)};
  }

 private:
  bool is_mounted_ = false;
};

TEST_F(RunFullDisk, a_full_disk_is_told_and_waited_for_and_nothing_is_lost_or_doubled) {
  Lines ids = send_twice(0, 100);
  const std::string path =
      write(head("at_end = \"wait\"\nbatch = 20") + "[retry]\nbackoff = \"1ms..100ms\"\n" +
            deposit() + announcement());
  Program program({"run", path});
  wait_for([&] { return has_effects(ids.size()); });
  // While there still is space for it, new work comes; the run sees it when there is none.
  ASSERT_EQ(::kill(program.pid(), SIGSTOP), 0);
  const Lines more = send_twice(100, 1000);
  ids.insert(ids.end(), more.begin(), more.end());
  fill_disk();
  ASSERT_EQ(::kill(program.pid(), SIGCONT), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  EXPECT_FALSE(has_effects(ids.size())) << "the disk was not full";
  free_disk();
  wait_for([&] { return has_effects(ids.size()); });
  ASSERT_EQ(::kill(program.pid(), SIGTERM), 0);
  const Answer answer = program.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("waiting for the store"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("free some space"), std::string::npos) << answer.err;
  expect_books(ids);
  expect_announced(ids);
}

}  // namespace
}  // namespace once::testing
