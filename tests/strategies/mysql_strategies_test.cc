// SPDX-License-Identifier: Apache-2.0
#include "strategies/server_ground.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

const GroundFactory mysql = ServerGround<MysqlHome>::factory();

INSTANTIATE_TEST_SUITE_P(Mysql, StrategySuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, StrategyRaces, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, StrategyStories, ::testing::Values(mysql));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::MysqlHome::server());
}
