// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_server_suite.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

using Home = MysqlHome;

RunKind mariadb() {
  return {
      [] { return Home::in(Home::make_place()); },
      Home::administer,
      {"CREATE TABLE flow (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200) UNIQUE, account "
       "VARCHAR(10) NOT NULL, amount SMALLINT CHECK (amount > 0), day DATE, kind ENUM ('cash', "
       "'card')) COLLATE utf8mb4_bin",
       "CREATE TABLE account (name VARCHAR(200) PRIMARY KEY, balance BIGINT NOT NULL) COLLATE "
       "utf8mb4_bin"}};
}

INSTANTIATE_TEST_SUITE_P(Mariadb, RunServer, ::testing::Values(mariadb()));

class LargeMessage : public RunServer {
 protected:
  // A body of this many bytes between two small ones.
  void send_large(std::size_t bytes) {
    send(line("first") + line("large", {{"ballast", std::string(bytes, 'x')}}) + line("last"));
  }
  // The body goes into a statement twice.
  static std::string twice() {
    return changed(plan(), "[[emit]]",
                   "[[do]]\nsql = \"INSERT INTO copies VALUES (:body, :body)\"\n[[emit]]");
  }
};

TEST_P(LargeMessage, what_no_packet_can_hold_is_parked_and_the_others_go_on) {
  define("CREATE TABLE copies (a LONGTEXT, b LONGTEXT)");
  send_large(5'000'000);
  const Answer answer = run(twice(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["parked"], 1);
  expect_books({"first", "last"});
}

// Not even its row among the parked ones: a person has to act.
TEST_P(LargeMessage, what_cannot_even_be_parked_ends_the_run_and_says_why) {
  define("CREATE TABLE copies (a LONGTEXT, b LONGTEXT)");
  send_large(9'000'000);
  const Answer answer = run(twice());
  EXPECT_EQ(answer.exit_code, 6) << answer.err;
  EXPECT_NE(answer.err.find("raise its max_allowed_packet"), std::string::npos) << answer.err;
  expect_books({"first"});
}

INSTANTIATE_TEST_SUITE_P(Mariadb, LargeMessage, ::testing::Values(mariadb()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::MysqlHome::server());
}
