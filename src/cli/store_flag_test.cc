// SPDX-License-Identifier: Apache-2.0
// The store that a command opens, for every command that has --store, as the parser lists them: a
// new command is covered without being named here.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"

namespace once::cli {
namespace {

using Words = std::vector<std::string>;

// Values of required options that not every word is good for.
const std::map<std::string, std::string> values{{"--as", "done"}, {"--to", "1"}};

// The calls of all commands that have --store, each with what it requires, without --store itself.
void collect(const CLI::App& app, const Words& path, std::vector<Words>& calls) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    Words words = path;
    words.push_back(command->get_name());
    collect(*command, words, calls);
    if (command->get_option_no_throw("--store") == nullptr) continue;
    for (const CLI::Option* option : command->get_options()) {
      // Required unless another says which messages, or that nothing is to be changed.
      const bool is_needed = option->get_name() == "NUMBER" || option->get_name() == "--reason";
      if (!option->get_required() && !is_needed) continue;
      if (!option->get_positional()) words.push_back(option->get_name());
      const auto known = values.find(option->get_name());
      words.push_back(known == values.end() ? "1" : known->second);
    }
    calls.push_back(words);
  }
}

std::vector<Words> calls_with_a_store() {
  Context context;
  CLI::App app;
  add_commands(app, context);
  std::vector<Words> calls;
  collect(app, {}, calls);
  return calls;
}

// The text of the error that a call ends with; none of the stores exists.
std::string error_of(Words words) {
  Context context;
  CLI::App app;
  add_commands(app, context);
  std::reverse(words.begin(), words.end());  // as the parser wants it
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return std::string("not parsed: ") + error.what();
  }
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
