// SPDX-License-Identifier: Apache-2.0
#include "live/live_suite.h"
#include "live/live_suite_disk.h"
#include "live/live_suite_late.h"
#include "live/live_suite_rights.h"
#include "live/live_suite_schema.h"
#include "live/live_suite_tls.h"
#include "live/old_schemas.h"
#include "store/mysql/schema.h"
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
  kind.make_place = "CREATE DATABASE ";
  kind.old_schemas = {mysql_schema_1, std::string(mysql_schema_1) + mysql_schema_2,
                      std::string(mysql_schema_1) + mysql_schema_2 + mysql_schema_3};
  kind.old_ledger_columns =
      "scope, id, born_ms, recorded_ms, at_offset, source_partition, outcome, admitted_by";
  kind.old_ledger_row = "(2, '{}', {}, 1, {}, 3, 0, 5)";
  return kind;
}

INSTANTIATE_TEST_SUITE_P(Mariadb, LiveSuite, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, FullDisk, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, LostRights, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, Encrypted, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, LateCommit, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, OldSchema, ::testing::Values(mariadb()));

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

TEST(MysqlLive, a_schema_that_was_made_in_part_is_finished_from_any_part_on) {
  std::vector<MysqlChange> all;
  for (const MysqlStep step : mysql_schema_steps) all.insert(all.end(), step.begin(), step.end());
  for (std::size_t made = 0; made <= all.size(); ++made) {
    const std::string url = Home::in(Home::make_place());
    for (const MysqlChange& change : std::span(all).first(made))
      Home::administer(std::string(change.statement), url);
    auto store = open_mysql_store(url);
    ASSERT_TRUE(store) << made << ": " << store.error().text;
    EXPECT_TRUE((*store)->take("shop", "p0"));
  }
}

TEST(MysqlLive, a_step_that_was_made_in_part_is_finished_and_an_older_program_is_refused) {
  constexpr auto next_step = std::to_array<MysqlChange>({
      {"ALTER TABLE once_counter ADD COLUMN note INT",
       "SELECT 1 FROM information_schema.columns WHERE table_schema = database() "
       "AND table_name = 'once_counter' AND column_name = 'note'"},
      {"CREATE INDEX once_counter_note ON once_counter (note)",
       "SELECT 1 FROM information_schema.statistics WHERE table_schema = database() "
       "AND table_name = 'once_counter' AND index_name = 'once_counter_note'"},
  });
  std::vector<MysqlStep> steps(mysql_schema_steps.begin(), mysql_schema_steps.end());
  steps.emplace_back(next_step);
  const std::string url = Home::in(Home::make_place());
  ASSERT_TRUE(open_mysql_store(url));
  Home::administer(std::string(next_step[0].statement), url);
  auto connection = MysqlConnection::open(MysqlAddress::parse(url).value()).value();
  for (int i = 0; i < 2; ++i) {
    const Status migrated = migrate_mysql(*connection, "here", steps);
    ASSERT_TRUE(migrated) << migrated.error().text;
  }
  const auto versions = connection->ask("SELECT version FROM once_schema ORDER BY version").value();
  ASSERT_EQ(versions->rows(), static_cast<int>(steps.size()));
  EXPECT_EQ(connection->ask(next_step[1].made).value()->rows(), 1);
  const auto older = open_mysql_store(url);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().tag, "newer");
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

// A statement that got past all checks: it is an error of its own, and not one of a rival.
TEST(MysqlLive, a_transaction_that_is_gone_is_an_error_of_its_own) {
  const std::string place = Home::make_place();
  administer(fmt::format("CREATE TABLE {}.t (a INT)", place));
  auto connection = MysqlConnection::open(MysqlAddress::parse(Home::in(place)).value()).value();
  for (const char* statement : {"TRUNCATE t", "COMMIT", "ALTER TABLE t COMMENT 'x'", "ROLLBACK",
                                "SET autocommit = 1", "LOCK TABLES t WRITE"}) {
    ASSERT_TRUE(connection->begin());
    ASSERT_TRUE(connection->send("INSERT INTO t VALUES (1)"));
    ASSERT_TRUE(connection->send(statement));
    ASSERT_TRUE(connection->commit());
    const Status done = connection->sync();
    ASSERT_EQ(done.has_value(), std::string_view(statement) == "SET autocommit = 1") << statement;
    if (!done) {
      EXPECT_EQ(done.error().tag, "transaction_lost") << done.error().text;
      EXPECT_EQ(done.error().remedy, Remedy::stop);
      EXPECT_NE(done.error().text.find(statement), std::string::npos) << done.error().text;
    }
    ASSERT_TRUE(connection->reset());
  }
  // What is its own end is none.
  ASSERT_TRUE(connection->begin());
  ASSERT_TRUE(connection->send("INSERT INTO t VALUES (1)"));
  ASSERT_TRUE(connection->commit());
  EXPECT_TRUE(connection->sync());
}

// In a zone in which summer ended half an hour ago, and in one in which it ends in half an hour:
// the hour between is there twice. The store's clock must not be off by one.
TEST(MysqlLive, the_clock_does_not_jump_when_summer_ends) {
  const std::int64_t now_s = system_clock().now_ms() / 1000;
  for (const std::int64_t ends_in_s : {-1800, 1800}) {
    const int zone = ends_in_s < 0 ? 901 : 902;
    const std::string name = fmt::format("Test{}", zone);
    administer(fmt::format("INSERT INTO mysql.time_zone VALUES ({}, 'N')", zone));
    administer(fmt::format("INSERT INTO mysql.time_zone_name VALUES ('{}', {})", name, zone));
    administer(
        fmt::format("INSERT INTO mysql.time_zone_transition_type VALUES ({0}, 0, 3600, 1, "
                    "'SUM'), ({0}, 1, 0, 0, 'WIN')",
                    zone));
    administer(
        fmt::format("INSERT INTO mysql.time_zone_transition VALUES ({0}, {1}, 0), "
                    "({0}, {2}, 1)",
                    zone, now_s - 10'000'000, now_s + ends_in_s));
    administer(fmt::format("SET GLOBAL time_zone = '{}'", name));
    const std::string place = Home::make_place();
    auto store = open_mysql_store(Home::in(place));
    administer(
        fmt::format("EXECUTE IMMEDIATE \"CREATE FUNCTION {}.set_zone(name VARCHAR(64)) RETURNS INT "
                    "BEGIN SET SESSION time_zone = name; RETURN 0; END\"",
                    place));
    const auto taken = store ? (*store)->take("shop", "p0") : Result<Position>(fail(store.error()));
    administer("SET GLOBAL time_zone = 'SYSTEM'");
    ASSERT_TRUE(taken) << taken.error().text;
    const auto operations = (*store)->records()->operations("shop", 0, 10).value();
    ASSERT_FALSE(operations.empty());
    EXPECT_NEAR(static_cast<double>(operations.back().at_ms), static_cast<double>(now_s * 1000),
                60'000.0)
        << name;
    // Even if a function that a handler calls has set the zone of its session.
    auto transaction = (*store)->begin("shop").value();
    ASSERT_TRUE(transaction->sql()->execute(fmt::format("DO {}.set_zone('{}')", place, name)));
    ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
    ASSERT_TRUE(transaction->commit());
    const auto record = (*store)->records()->find("shop", "a").value();
    ASSERT_TRUE(record);
    EXPECT_NEAR(static_cast<double>(record->recorded_ms), static_cast<double>(now_s * 1000),
                60'000.0)
        << name;
  }
}

TEST(MysqlLive, tables_of_its_own_without_transactions_are_refused) {
  const std::string place = Home::make_place();
  ASSERT_TRUE(open_mysql_store(Home::in(place)));
  administer(fmt::format("ALTER TABLE {}.once_ledger ENGINE = Aria", place));
  const auto refused = open_mysql_store(Home::in(place));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "unsafe");
  EXPECT_NE(refused.error().text.find("once_ledger"), std::string::npos) << refused.error().text;
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
