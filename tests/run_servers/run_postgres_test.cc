// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_server_suite.h"
#include "run_servers/run_types_suite.h"
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
           "CREATE TABLE account (name TEXT PRIMARY KEY, balance BIGINT NOT NULL)",
           "CREATE TABLE typed (n BIGSERIAL, id TEXT PRIMARY KEY, at TIMESTAMPTZ, ms BIGINT, flag "
           "BOOLEAN, price NUMERIC(40, 10))"},
          "COALESCE(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), 'none')",
          "price::text",
          "[[do]]\nsql = \"UPDATE account SET balance = balance + 1 WHERE name = 'ann' RETURNING "
          "balance, now()\"\ninto = { balance = \"integer\", at = \"timestamp\" }\n"};
}

INSTANTIATE_TEST_SUITE_P(Postgres, RunServer, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, RunTypes, ::testing::Values(postgres()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::PostgresHome::server());
}
