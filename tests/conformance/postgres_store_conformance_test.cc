// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real PostgreSQL.
#include "conformance/server_under_test.h"
#include "conformance/store_suite.h"
#include "conformance/store_suite_borders.h"
#include "conformance/store_suite_joined.h"
#include "conformance/store_suite_sql.h"
#include "conformance/store_suite_updates.h"
#include "testing/postgres_home.h"

namespace once::testing {
namespace {

const StoreFactory postgres = ServerUnderTest<PostgresHome>::factory();

INSTANTIATE_TEST_SUITE_P(Postgres, StoreSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, RepairSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, DeferralSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, SqlStoreSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, BorderSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, UpdateSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, TogetherSuite, ::testing::Values(postgres));
INSTANTIATE_TEST_SUITE_P(Postgres, JoinedSuite, ::testing::Values(postgres));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::PostgresHome::server());
}
