// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_server_suite.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

using Home = MysqlHome;

RunKind mariadb() {
  return {
      [] { return Home::in(Home::make_place()); },
      {"CREATE TABLE flow (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200) UNIQUE, account "
       "VARCHAR(10) NOT NULL, amount SMALLINT CHECK (amount > 0), day DATE, kind ENUM ('cash', "
       "'card')) COLLATE utf8mb4_bin",
       "CREATE TABLE account (name VARCHAR(200) PRIMARY KEY, balance BIGINT NOT NULL) COLLATE "
       "utf8mb4_bin"}};
}

INSTANTIATE_TEST_SUITE_P(Mariadb, RunServer, ::testing::Values(mariadb()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::MysqlHome::server());
}
