// SPDX-License-Identifier: Apache-2.0
#include "store/redis/error.h"

#include <gtest/gtest.h>

namespace once {
namespace {

struct Case {
  std::string_view native;
  RedisStage stage;
  Remedy remedy;
  std::string_view tag;
};

TEST(RedisError, every_error_has_its_remedy) {
  constexpr auto open = RedisStage::open;
  constexpr auto read = RedisStage::read;
  constexpr auto write = RedisStage::write;
  for (const Case& known : {
           Case{"NOAUTH Authentication required.", open, Remedy::stop, "denied"},
           {"WRONGPASS invalid username-password pair", open, Remedy::stop, "denied"},
           {"NOPERM this user has no permissions to run the 'evalsha' command", write, Remedy::stop,
            "denied"},
           {"OOM command not allowed when used memory > 'maxmemory'. script: f, on @user_script:1.",
            write, Remedy::retry, "full"},
           {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -OOM command "
            "not allowed",
            write, Remedy::retry, "full"},
           {"MISCONF Errors writing to the AOF file: No space left on device", write, Remedy::retry,
            "full"},
           {"READONLY You can't write against a read only replica.", write, Remedy::retry,
            "replica"},
           {"NOREPLICAS Not enough good replicas to write.", write, Remedy::retry, "away"},
           {"LOADING Redis is loading the dataset in memory", read, Remedy::retry, "away"},
           {"BUSY Redis is busy running a script.", write, Remedy::retry, "busy"},
           {"CLUSTERDOWN The cluster is down", write, Remedy::retry, "away"},
           {"MOVED 3999 127.0.0.1:6381", write, Remedy::retry, "busy"},
           {"TRYAGAIN Multiple keys request during rehashing of slot", write, Remedy::retry,
            "busy"},
           {"EXECABORT Transaction discarded because of previous errors.", write, Remedy::retry,
            "conflict"},
           {"WRONGTYPE Operation against a key holding the wrong kind of value", read, Remedy::park,
            "constraint"},
           {"ERR max number of clients reached", open, Remedy::retry, "exhausted"},
           {"ERR DB index is out of range", open, Remedy::stop, "missing"},
           {"ERR unknown command 'EVALSHA'", write, Remedy::stop, "command"},
           {"", read, Remedy::stop, "command"},
       }) {
    const Error error = error_from_redis(known.native, known.stage, "here", "work");
    EXPECT_EQ(error.remedy, known.remedy) << known.native;
    EXPECT_EQ(error.tag, known.tag) << known.native;
    EXPECT_NE(error.text.find("here: cannot work: "), std::string::npos) << error.text;
  }
}

TEST(RedisError, a_lost_answer_to_a_write_is_unknown_and_to_a_read_is_nothing) {
  const Error written = lost_connection(RedisStage::write, "here", "commit", "closed");
  EXPECT_EQ(written.remedy, Remedy::recheck);
  EXPECT_EQ(written.tag, "lost");
  for (const RedisStage stage : {RedisStage::open, RedisStage::read}) {
    const Error error = lost_connection(stage, "here", "read", "closed");
    EXPECT_EQ(error.remedy, Remedy::retry);
    EXPECT_EQ(error.tag, "away");
  }
}

}  // namespace
}  // namespace once
