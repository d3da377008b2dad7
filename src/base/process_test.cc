// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace once {
namespace {

TEST(Process, this_one_is_not_gone_and_keeps_its_identity) {
  EXPECT_EQ(process_identity(), process_identity());
  EXPECT_FALSE(process_is_gone(process_identity()));
}

TEST(Process, a_child_is_gone_when_it_has_ended_even_before_it_is_reaped) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::array<int, 2> hold{};
  ASSERT_EQ(::pipe(hold.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string identity = process_identity();
    (void)!::write(pipe[1], identity.data(), identity.size());
    char byte = 0;
    ::close(hold[1]);
    (void)!::read(hold[0], &byte, 1);
    ::_exit(0);
  }
  std::array<char, 256> text{};
  const ssize_t size = ::read(pipe[0], text.data(), text.size());
  ASSERT_GT(size, 0);
  const std::string identity(text.data(), static_cast<std::size_t>(size));
  EXPECT_NE(identity, process_identity());
  EXPECT_FALSE(process_is_gone(identity));
  ::close(hold[1]);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(process_is_gone(identity)) << "a zombie does nothing any more";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(process_is_gone(identity));
  for (const int fd : {pipe[0], pipe[1], hold[0]}) ::close(fd);
}

TEST(Process, another_process_with_the_same_number_is_not_the_same) {
  std::string identity = process_identity();
  identity.back() = identity.back() == '1' ? '2' : '1';
  EXPECT_TRUE(process_is_gone(identity));
}

TEST(Process, what_runs_elsewhere_or_is_not_an_identity_is_not_gone) {
  const std::string mine = process_identity();
  const std::size_t life = mine.find(' ') + 1;
  std::string other_boot = mine;
  other_boot[life] = other_boot[life] == 'a' ? 'b' : 'a';
  for (const std::string& text :
       {other_boot, mine.substr(0, life - 1), std::string(), std::string("host:x y"),
        std::string(" "), "host:-1 " + mine.substr(life), "host: " + mine.substr(life)})
    EXPECT_FALSE(process_is_gone(text)) << text;
}

}  // namespace
}  // namespace once
