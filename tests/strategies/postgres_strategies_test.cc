// SPDX-License-Identifier: Apache-2.0
#include "strategies/server_ground.h"
#include "strategies/strategy_races.h"
#include "strategies/strategy_stories.h"
#include "testing/postgres_home.h"

namespace once::testing {
namespace {

const GroundFactory postgres = ServerGround<PostgresHome>::factory();

INSTANTIATE_TEST_SUITE_P(Postgres, StrategySuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, StrategyRaces, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, StrategyStories, ::testing::Values(postgres));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::PostgresHome::server());
}
