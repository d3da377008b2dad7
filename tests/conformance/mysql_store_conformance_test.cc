// SPDX-License-Identifier: Apache-2.0
// The suite of all stores, on a real MariaDB.
#include "conformance/server_under_test.h"
#include "conformance/store_suite.h"
#include "conformance/store_suite_borders.h"
#include "conformance/store_suite_joined.h"
#include "conformance/store_suite_sql.h"
#include "conformance/store_suite_updates.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

const StoreFactory mysql = ServerUnderTest<MysqlHome>::factory();

INSTANTIATE_TEST_SUITE_P(Mysql, StoreSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, RepairSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, DeferralSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, SqlStoreSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, BorderSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, UpdateSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, TogetherSuite, ::testing::Values(mysql));
INSTANTIATE_TEST_SUITE_P(Mysql, JoinedSuite, ::testing::Values(mysql));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::MysqlHome::server());
}
