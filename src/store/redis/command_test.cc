// SPDX-License-Identifier: Apache-2.0
#include "store/redis/command.h"

#include <gtest/gtest.h>

namespace once {
namespace {

Result<RedisCommand> parsed(const std::vector<std::string>& words) {
  return RedisCommand::parse(words);
}

TEST(RedisCommand, known_commands_are_taken_in_any_case) {
  const auto command = parsed({"hincrby", "points", "ann", "5"});
  ASSERT_TRUE(command) << command.error().text;
  EXPECT_EQ(command->name, "HINCRBY");
  EXPECT_EQ(command->key, "points");
  ASSERT_EQ(command->arguments().size(), 2u);
  EXPECT_EQ(command->arguments()[1], "5");
  EXPECT_TRUE(parsed({"PERSIST", "k"}));
  EXPECT_TRUE(parsed({"SET", "k", "v", "EX", "10"}));
}

TEST(RedisCommand, what_a_script_cannot_undo_is_refused_and_the_known_ones_are_named) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"FLUSHALL", "k"}, {"DEL", "k"}, {"EVAL", "k", "0"}, {"INCRBY"}}) {
    const auto command = parsed(words);
    ASSERT_FALSE(command) << words[0];
    EXPECT_EQ(command.error().remedy, Remedy::stop);
  }
  EXPECT_NE(parsed({"DEL", "k"}).error().text.find("known: SET, SETNX"), std::string::npos);
}

TEST(RedisCommand, number_of_arguments_is_checked) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"INCRBY", "k"}, {"SADD", "k", "a", "b"}, {"HSET", "k", "f"}}) {
    const auto command = parsed(words);
    ASSERT_FALSE(command) << words[0];
    EXPECT_NE(command.error().text.find("arguments after its key"), std::string::npos);
  }
}

}  // namespace
}  // namespace once
