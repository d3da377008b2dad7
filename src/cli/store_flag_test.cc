// SPDX-License-Identifier: Apache-2.0
// The store that a command opens, for every command that has --store, as the parser lists them: a
// new command is covered without being named here.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags.h"

namespace once::cli {
namespace {

using Words = std::vector<std::string>;

// Values of required options that not every word is good for.
const std::map<std::string, std::string> values{{"--as", "done"}, {"--to", "1"}};

bool has_store(const CommandText& command) {
  return std::any_of(command.flags.begin(), command.flags.end(), [](const FlagText& flag) {
    return flag.names == std::vector<std::string>{"--store"};
  });
}

void add_value(Words& words, const std::string& name) {
  const auto known = values.find(name);
  words.push_back(known == values.end() ? "1" : known->second);
}

// The calls of all commands that have --store, each with what it requires, without --store itself.
void collect(const CommandText& above, const Words& path, std::vector<Words>& calls) {
  for (const CommandText& command : above.commands) {
    Words words = path;
    words.push_back(command.word);
    collect(command, words, calls);
    if (!has_store(command)) continue;
    for (const FlagText& flag : command.flags) {
      // Required unless another says which messages, or that nothing is to be changed.
      if (!flag.required && flag.names.front() != "--reason") continue;
      words.push_back(flag.names.front());
      add_value(words, flag.names.front());
    }
    for (const FlagText& flag : command.positionals)
      if (flag.required || flag.names.front() == "NUMBER") add_value(words, flag.names.front());
    calls.push_back(words);
  }
}

std::vector<Words> calls_with_a_store() {
  Context context;
  Parser parser("", "once");
  add_commands(parser.root(), context);
  std::vector<Words> calls;
  collect(parser.root().text(), {}, calls);
  return calls;
}

// The text of the error that a call ends with; none of the stores exists.
std::string error_of(const Words& words) {
  Context context;
  Parser parser("", "once");
  add_commands(parser.root(), context);
  const Parsed parsed = parser.parse(words);
  if (parsed.failure) return "not parsed: " + parsed.failure->text;
  const auto answer = context.action();
  return answer ? "no error" : answer.error().text;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

class StoreFlag : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("ONCE_STORE", "sqlite:/nowhere/of-the-environment.db", 1); }
  void TearDown() override { ::unsetenv("ONCE_STORE"); }

  const std::vector<Words> calls_ = calls_with_a_store();
};

TEST_F(StoreFlag, wins_over_the_environment_in_every_command) {
  ASSERT_GE(calls_.size(), 18u);
  for (Words words : calls_) {
    words.insert(words.end(), {"--store", "sqlite:/nowhere/of-the-flag.db"});
    const std::string error = error_of(words);
    EXPECT_NE(error.find("of-the-flag.db"), std::string::npos) << joined(words) << ": " << error;
  }
}

// As with --store "$STAGING" where that variable is not set.
TEST_F(StoreFlag, that_is_empty_does_not_stand_for_the_environment) {
  for (Words words : calls_) {
    words.push_back("--store=");
    const std::string error = error_of(words);
    EXPECT_EQ(error.find("of-the-environment.db"), std::string::npos)
        << joined(words) << ": " << error;
    EXPECT_NE(error, "no error") << joined(words);
  }
}

TEST_F(StoreFlag, is_not_needed_where_the_environment_names_the_store) {
  for (const Words& words : calls_) {
    const std::string error = error_of(words);
    EXPECT_NE(error.find("of-the-environment.db"), std::string::npos)
        << joined(words) << ": " << error;
  }
}

TEST_F(StoreFlag, is_asked_for_where_the_environment_names_none) {
  for (const char* const none : {"", static_cast<const char*>(nullptr)}) {
    if (none == nullptr)
      ::unsetenv("ONCE_STORE");
    else
      ::setenv("ONCE_STORE", none, 1);
    for (const Words& words : calls_) {
      const std::string error = error_of(words);
      EXPECT_NE(error.find("--store is required"), std::string::npos)
          << joined(words) << ": " << error;
    }
  }
}

}  // namespace
}  // namespace once::cli
