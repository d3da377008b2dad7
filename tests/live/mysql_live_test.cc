// SPDX-License-Identifier: Apache-2.0
#include "live/live_suite.h"
#include "store/mysql/mysql.h"

namespace once::testing {
namespace {

LiveServer& server() {
  static LiveServer made("mariadb");
  return made;
}

LiveKind mariadb() {
  return {"mariadb", &server(), [](const std::string& url) { return open_mysql_store(url); },
          "CREATE TABLE effect (number BIGINT AUTO_INCREMENT PRIMARY KEY, "
          "id VARBINARY(1024) NOT NULL)"};
}

INSTANTIATE_TEST_SUITE_P(Mariadb, LiveSuite, ::testing::Values(mariadb()));

// Runs a statement as the administrator.
void administer(const std::string& statement) {
  auto admin = MysqlConnection::open(MysqlAddress::parse(server().url()).value()).value();
  const auto done = admin->ask(statement);
  ASSERT_TRUE(done) << done.error().text;
}

std::string with(const std::string& url, const std::string& from, const std::string& to) {
  std::string changed = url;
  changed.replace(changed.find(from), from.size(), to);
  return changed;
}

TEST(MysqlLive, wrong_credentials_and_databases_are_told_apart_and_secrets_are_not_shown) {
  const std::string url = server().url();
  const auto wrong_password = open_mysql_store(with(url, "once-test-secret", "hush"));
  ASSERT_FALSE(wrong_password);
  EXPECT_EQ(wrong_password.error().tag, "denied");
  EXPECT_EQ(wrong_password.error().text.find("hush"), std::string::npos);
  const auto wrong_database = open_mysql_store(url + "_not_there");
  ASSERT_FALSE(wrong_database);
  EXPECT_EQ(wrong_database.error().tag, "missing");
  const auto nobody = open_mysql_store("mysql://once:x@127.0.0.1:1/once");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().tag, "away");
}

TEST(MysqlLive, missing_rights_are_named) {
  administer("CREATE DATABASE closed");
  administer("CREATE USER guest@'%' IDENTIFIED BY 'guest'");
  administer("GRANT SELECT ON closed.* TO guest@'%'");
  std::string url = with(server().url(), "once:once-test-secret", "guest:guest");
  const auto denied = open_mysql_store(url.substr(0, url.rfind('/')) + "/closed");
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().tag, "denied") << denied.error().text;
}

TEST(MysqlLive, a_schema_of_a_newer_program_is_refused) {
  administer("CREATE DATABASE newer");
  const std::string url = server().url().substr(0, server().url().rfind('/')) + "/newer";
  ASSERT_TRUE(open_mysql_store(url));
  administer("UPDATE newer.once_schema SET version = 99");
  const auto refused = open_mysql_store(url);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "newer");
}

TEST(MysqlLive, H22_settings_that_lose_commits_are_refused) {
  administer("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  const auto refused = open_mysql_store(server().url());
  administer("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "unsafe");
  EXPECT_NE(refused.error().text.find("innodb_flush_log_at_trx_commit"), std::string::npos);
  EXPECT_TRUE(open_mysql_store(server().url()));
}

TEST(MysqlLive, many_programs_make_the_schema_at_once) {
  administer("CREATE DATABASE together");
  const std::string url = server().url().substr(0, server().url().rfind('/')) + "/together";
  std::vector<std::thread> programs;
  for (int i = 0; i < 8; ++i)
    programs.emplace_back([&] {
      const auto store = open_mysql_store(url);
      EXPECT_TRUE(store) << store.error().text;
    });
  for (std::thread& program : programs) program.join();
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
