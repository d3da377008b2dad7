// SPDX-License-Identifier: Apache-2.0
// Every command that an error names is pasted into a shell as it stands there, and repairs what the
// error was about.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::run_once;

class Hints : public testing::RunBank {
 protected:
  void TearDown() override {
    ::unsetenv("ONCE_STORE");
    RunBank::TearDown();
  }

  // What stands in backticks and begins with `once`. A backtick in quotes does not end it.
  static Lines commands_in(const std::string& text) {
    Lines found;
    for (std::size_t begin = text.find("`once "); begin != std::string::npos;
         begin = text.find("`once ", begin)) {
      bool in_quotes = false;
      std::size_t end = begin + 1;
      for (; end < text.size() && (in_quotes || text[end] != '`'); ++end) {
        if (text[end] == '\\' && !in_quotes)
          ++end;  // what follows is no quote
        else if (text[end] == '\'')
          in_quotes = !in_quotes;
      }
      found.push_back(text.substr(begin + 1, end - begin - 1));
      begin = end;
    }
    return found;
  }

  void paste(const std::string& command) {
    const std::string path = std::filesystem::path(ONCE_BINARY).parent_path();
    const std::string script = scratch_.path("pasted.sh"), err = scratch_.path("pasted.err");
    std::ofstream(script) << "export PATH=\"" << path << ":$PATH\"\n" << command << "\n";
    const int status = std::system(("bash " + script + " > /dev/null 2> " + err).c_str());
    std::ifstream told(err);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << command << "\n"
        << std::string(std::istreambuf_iterator<char>(told), {});
  }
  // Pastes all of them, of which there are so many; nothing stands for a word of the reader's.
  void expect_pasteable(const std::string& text, std::size_t count) {
    const Lines commands = commands_in(text);
    EXPECT_EQ(commands.size(), count) << text;
    for (const char* placeholder : {"SCOPE", "TEXT", "TOPIC/NUMBER", "WHICH", " URL"})
      EXPECT_EQ(text.find(placeholder), std::string::npos) << text;
    for (const std::string& command : commands) paste(command);
  }
  // The error of a run that does not start, and of the check.
  void expect_repaired(const std::string& text, const std::string& tag, std::size_t count) {
    const Answer checked = run(text, {"--check"});
    EXPECT_EQ(checked.exit_code, 3) << checked.err;
    EXPECT_EQ(commands_in(checked.err).size(), count) << checked.err;
    const Answer refused = run(text);
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_NE(refused.err.find("error[" + tag + "]"), std::string::npos) << refused.err;
    expect_pasteable(refused.err, count);
    const Answer again = run(text);
    EXPECT_EQ(again.exit_code, 0) << again.err;
  }
  void make_again(const std::string& name) {
    ASSERT_EQ(run_once({"topic", "delete", topic(name)}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", topic(name)}).exit_code, 0);
  }
  static std::string scope_with_blanks() {
    std::string text = head() + deposit() + announcement();
    text.replace(text.find("\"deposits\""), 10, "\"ann's deposits\"");
    return text;
  }
};

TEST_F(Hints, a_position_that_the_topic_does_not_have) {
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(scope_with_blanks()).exit_code, 0);
  ASSERT_EQ(run_once({"position", "set", "--store", store(), "--scope", "ann's deposits",
                      "--partition", "deposits/0", "--to", "7", "--reason", "a slip"})
                .exit_code,
            0);
  expect_repaired(scope_with_blanks(), "gone", 2);
  expect_books({"deposit-1"});
}

TEST_F(Hints, a_topic_that_was_created_again) {
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(scope_with_blanks()).exit_code, 0);
  make_again("deposits");
  send(line("deposit-2", "ann", 1));
  expect_repaired(scope_with_blanks(), "gone", 2);
}

TEST_F(Hints, a_destination_that_has_diverged) {
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(scope_with_blanks()).exit_code, 0);
  make_again("done");
  send(line("deposit-2", "ann", 1));
  const Answer refused = run(scope_with_blanks());
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("error[diverged]"), std::string::npos) << refused.err;
  const Answer checked = run(scope_with_blanks(), {"--check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  ASSERT_EQ(commands_in(checked.err).size(), 1u) << checked.err;
  paste(commands_in(checked.err).front());
  EXPECT_EQ(run(scope_with_blanks()).exit_code, 0);
  expect_announced({"deposit-2"});
}

TEST_F(Hints, messages_that_wait_for_a_destination_that_the_file_no_longer_has) {
  send(line("deposit-1", "ann", 1));
  ::setenv("ONCE_POINT", "relay_after_assign", 1);
  ASSERT_EQ(run(scope_with_blanks()).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  std::string without = scope_with_blanks();
  without.resize(without.size() - announcement().size());
  expect_repaired(without, "config", 1);
  expect_books({"deposit-1"});
  expect_announced({});
}

TEST_F(Hints, a_bridge_whose_copy_was_made_again) {
  send(line("deposit-1", "ann", 1));
  const Lines words{"bridge", topic("deposits"), topic("done"), "--state",
                    "sqlite:" + scratch_.path("bridge.db")};
  ASSERT_EQ(run_once(words).exit_code, 0);
  make_again("done");
  send(line("deposit-2", "ann", 1));
  const Answer refused = run_once(words);
  EXPECT_NE(refused.err.find("error[diverged]"), std::string::npos) << refused.err;
  const Lines commands = commands_in(refused.err);
  ASSERT_FALSE(commands.empty()) << refused.err;
  paste(commands.front());
}

TEST_F(Hints, too_many_parked_messages) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += line("deposit-" + std::to_string(i), "eve", 1);
  send(lines);
  const Answer stopped = run(scope_with_blanks());
  EXPECT_EQ(stopped.exit_code, 6) << stopped.err;
  expect_pasteable(stopped.err, 2);
}

TEST_F(Hints, a_role_that_was_changed_by_hand) {
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(scope_with_blanks()).exit_code, 0);
  ASSERT_EQ(run_once({"claims", "settle", "ann's deposits", "--scope", "once.pipeline", "--as",
                      "rejected", "--reason", "a slip", "--store", store()})
                .exit_code,
            0);
  const Answer refused = run(scope_with_blanks());
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  expect_pasteable(refused.err, 1);
  EXPECT_EQ(run(scope_with_blanks()).exit_code, 0);
}

TEST_F(Hints, a_birth_before_the_horizon) {
  const std::string births = head("at_end = \"stop\"\nparked_max = \"none\"") + deposit();
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(births).exit_code, 0);
  ASSERT_EQ(run_once({"horizon", "set", "--store", store(), "--scope", "deposits", "--to", "-0s",
                      "--reason", "for the test"})
                .exit_code,
            0);
  ASSERT_EQ(run_once({"produce", topic("deposits"), "--json"},
                     R"({"body":"{\"id\":\"old\",\"account\":\"ann\",\"amount\":1}",)"
                     R"("timestamp_ms":1000})"
                     "\n")
                .exit_code,
            0);
  ASSERT_EQ(run(births).exit_code, 0);
  const Lines reasons = parked_reasons();
  ASSERT_EQ(reasons.size(), 1u);
  // What is parked does not name its store: ONCE_STORE does.
  ::setenv("ONCE_STORE", store().c_str(), 1);
  expect_pasteable(reasons[0], 2);
}

TEST_F(Hints, a_topic_that_is_not_there) {
  send(line("deposit-1", "ann", 1));
  const Answer refused = run_once({"consume", topic("deposit")});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(refused.err.find("there is no topic deposit in " + scratch_.directory() +
                             ", did you mean \"deposits\"?"),
            std::string::npos)
      << refused.err;
  expect_pasteable(refused.err, 1);
  EXPECT_EQ(run_once({"consume", topic("deposit")}).exit_code, 0);
}

TEST_F(Hints, a_damaged_topic) {
  send(line("deposit-1", "ann", 1));
  std::filesystem::remove(scratch_.path("deposits/0/superblock"));
  const Answer refused = run(head() + deposit());
  EXPECT_EQ(refused.exit_code, 7) << refused.err;
  const Lines commands = commands_in(refused.err);
  ASSERT_EQ(commands.size(), 1u) << refused.err;
  EXPECT_NE(commands[0].find("once topic repair file:"), std::string::npos);
  EXPECT_EQ(run_once({"topic", "repair", commands[0].substr(18)}).exit_code,
            run_once({"topic", "repair", topic("deposits")}).exit_code);
}

}  // namespace
}  // namespace once
