// SPDX-License-Identifier: Apache-2.0
// Shell completions and manual pages, as the shells and roff read them.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "program.h"
#include "testing/scratch.h"

namespace once {
namespace {

using testing::run_once;
using testing::Scratch;

// What a shell command writes to stdout and stderr.
std::string output_of(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), count);
  if (const int status = pclose(pipe); status != 0) text += "[exit " + std::to_string(status) + "]";
  return text;
}

class Completion : public ::testing::Test {
 protected:
  std::string script(const std::string& shell) {
    const auto run = run_once({"completion", shell});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::string path = scratch_.path("once." + shell);
    std::ofstream(path) << run.out;
    return path;
  }
  // What bash offers for the last of these words.
  std::string bash(const std::string& words) {
    return output_of("bash --norc -c 'source " + script("bash") + "; COMP_WORDS=(" + words +
                     "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _once; echo \"${COMPREPLY[*]}\"'");
  }

  Scratch scratch_;
};

TEST_F(Completion, bash_offers_commands_flags_and_values) {
  EXPECT_EQ(bash("once par"), "park\n");
  EXPECT_EQ(bash("once park re"), "replay resume\n");
  EXPECT_EQ(bash("once park replay --rea"), "--reason\n");
  EXPECT_EQ(bash("once park replay --store sqlite:a --dry"), "--dry-run\n");
  EXPECT_EQ(bash("once consume -o j"), "json jsonl\n");
  EXPECT_EQ(bash("once topic create --gaps h"), "hold\n");
  EXPECT_EQ(bash("once completion z"), "zsh\n");
  EXPECT_EQ(bash("once init poi"), "points\n");
}

TEST_F(Completion, bash_offers_files_for_other_values) {
  std::ofstream(scratch_.path("points.toml")) << "\n";
  EXPECT_EQ(bash("once run " + scratch_.path("poi")), scratch_.path("points.toml") + "\n");
}

TEST_F(Completion, zsh_reads_its_script) {
  EXPECT_EQ(output_of("zsh -f -n " + script("zsh")), "");
  const std::string functions =
      output_of("zsh -f -c 'autoload -U compinit; compinit -u -D; source " + script("zsh") +
                "; whence -w _once _once_park_replay'");
  EXPECT_EQ(functions, "_once: function\n_once_park_replay: function\n");
}

TEST_F(Completion, fish_offers_commands_flags_and_values) {
  const std::string fish = "HOME=" + scratch_.directory() + " fish --no-config -c 'source " +
                           script("fish") + "; complete -C \"";
  EXPECT_EQ(output_of(fish + "once par\"'"),
            "park\tParked messages: list, show, add, replay, drop\n");
  EXPECT_NE(output_of(fish + "once park re\"'").find("resume\t"), std::string::npos);
  EXPECT_NE(output_of(fish + "once consume -o \"'").find("jsonl"), std::string::npos);
  EXPECT_NE(output_of(fish + "once park replay --rea\"'").find("--reason"), std::string::npos);
}

TEST_F(Completion, unknown_shell_is_refused) {
  const auto run = run_once({"completion", "csh"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("bash, fish, zsh"), std::string::npos) << run.err;
}

TEST(Manual, every_command_has_a_page_that_roff_accepts) {
  Scratch scratch;
  const auto run = run_once({"manual", scratch.path("man1")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::size_t count = 0;
  for (const auto& page : std::filesystem::directory_iterator(scratch.path("man1"))) {
    ++count;
    EXPECT_EQ(output_of("groff -man -ww -z " + page.path().string()), "") << page.path();
  }
  EXPECT_GT(count, 40u);
  const std::string text =
      output_of("groff -man -Tascii " + scratch.path("man1/once-park-replay.1") + " | col -bx");
  EXPECT_NE(text.find("once-park-replay - Send messages once more"), std::string::npos) << text;
  EXPECT_NE(text.find("--group N"), std::string::npos) << text;
}

TEST(Manual, directory_that_cannot_be_made_is_an_error) {
  const auto run = run_once({"manual", "/dev/null/man1"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("/dev/null/man1"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace once
