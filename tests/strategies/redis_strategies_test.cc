// SPDX-License-Identifier: Apache-2.0
#include "strategies/server_ground.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/redis_home.h"

namespace once::testing {
namespace {

const GroundFactory redis = ServerGround<RedisHome>::factory();

INSTANTIATE_TEST_SUITE_P(Redis, StrategySuite, ::testing::Values(redis));
INSTANTIATE_TEST_SUITE_P(Redis, StrategyRaces, ::testing::Values(redis));
INSTANTIATE_TEST_SUITE_P(Redis, StrategyStories, ::testing::Values(redis));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::RedisHome::server());
}
