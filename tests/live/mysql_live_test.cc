// SPDX-License-Identifier: Apache-2.0
#include "live/live_suite.h"
#include "live/live_suite_disk.h"
#include "live/live_suite_rights.h"
#include "live/live_suite_tls.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

using Home = MysqlHome;

LiveServer& server() { return Home::server(); }
void administer(const std::string& statements) { Home::administer(statements); }

LiveKind mariadb() {
  LiveKind kind = live_kind<Home>();
  kind.small_disk.disk = "160M";
  kind.small_disk.settings = {"innodb_log_file_size=16M", "innodb_buffer_pool_size=32M"};
  kind.make_user = "CREATE USER {} IDENTIFIED BY 'only-for-clerks'";
  kind.verify = "?ssl=verify&ssl-ca={}";
  kind.require = "?ssl=require";
  kind.is_encrypted =
      "SELECT 1 FROM information_schema.session_status "
      "WHERE variable_name = 'Ssl_cipher' AND variable_value <> ''";
  kind.other_name = "127.1";
  return kind;
}

INSTANTIATE_TEST_SUITE_P(Mariadb, LiveSuite, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, FullDisk, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, LostRights, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, Encrypted, ::testing::Values(mariadb()));

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
  const std::string url = with(server().url(), "once:once-test-secret", "guest:guest");
  const auto denied = open_mysql_store(Home::in("closed", url));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().tag, "denied") << denied.error().text;
}

TEST(MysqlLive, a_schema_of_a_newer_program_is_refused) {
  administer("CREATE DATABASE newer");
  const std::string url = Home::in("newer");
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
  const std::string url = Home::in("together");
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
