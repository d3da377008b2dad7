// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real Redis: with claims beside the books, and spread over shards.
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
INSTANTIATE_TEST_SUITE_P(RedisSharded, StoreSuite, ::testing::Values(sharded));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::RedisHome::server());
}
