// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real Redis: with claims beside the books, and spread over shards;
// under the locale C and under another one.
#include "conformance/server_under_test.h"
#include "conformance/store_suite.h"
#include "testing/redis_home.h"

namespace once::testing {
namespace {

struct ShardedHome : RedisHome {
  static constexpr const char* name = "redis_sharded";
  static std::string make_place() { return "sharded_" + RedisHome::make_place(); }
  static std::string in(const std::string& place, const std::string& url) {
    return RedisHome::in(place, url) + "&shards=7";
  }
};

const StoreFactory redis = ServerUnderTest<RedisHome>::factory();
const StoreFactory sharded = ServerUnderTest<ShardedHome>::factory();

INSTANTIATE_TEST_SUITE_P(Redis, StoreSuite, ::testing::Values(redis));
INSTANTIATE_TEST_SUITE_P(Redis, RepairSuite, ::testing::Values(redis));
INSTANTIATE_TEST_SUITE_P(Redis, DeferralSuite, ::testing::Values(redis));
INSTANTIATE_TEST_SUITE_P(RedisSharded, StoreSuite, ::testing::Values(sharded));
INSTANTIATE_TEST_SUITE_P(RedisSharded, RepairSuite, ::testing::Values(sharded));

// Otherwise the suite under another locale would prove nothing.
TEST(RedisLocale, is_the_one_that_was_asked_for) {
  const auto answer = RedisHome::answer_to({"EVAL", "return 'a' < 'B' and 'words' or 'bytes'", "0"},
                                           RedisHome::server().url());
  EXPECT_EQ(answer.text(), RedisHome::locale().empty() ? "bytes" : "words");
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::RedisHome::server());
}
