// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_server_suite.h"
#include "testing/postgres_home.h"

namespace once::testing {
namespace {

using Home = PostgresHome;

RunKind postgres() {
  return {[] { return Home::in(Home::make_place()); },
          Home::administer,
          {"CREATE TYPE kinds AS ENUM ('cash', 'card')",
           "CREATE TABLE flow (n BIGSERIAL PRIMARY KEY, id TEXT UNIQUE, account VARCHAR(10) NOT "
           "NULL, amount SMALLINT CHECK (amount > 0), day DATE, kind kinds)",
           "CREATE TABLE account (name TEXT PRIMARY KEY, balance BIGINT NOT NULL)"}};
}

INSTANTIATE_TEST_SUITE_P(Postgres, RunServer, ::testing::Values(postgres()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::PostgresHome::server());
}
