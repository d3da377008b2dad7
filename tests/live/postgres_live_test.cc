// SPDX-License-Identifier: Apache-2.0
#include "live/live_suite.h"
#include "live/live_suite_disk.h"
#include "live/live_suite_late.h"
#include "live/live_suite_rights.h"
#include "live/live_suite_schema.h"
#include "live/live_suite_tls.h"
#include "live/old_schemas.h"
#include "testing/postgres_home.h"

namespace once::testing {
namespace {

using Home = PostgresHome;

LiveServer& server() { return Home::server(); }
void administer(const std::string& statements) { Home::administer(statements); }

LiveKind postgres() {
  LiveKind kind = live_kind<Home>();
  kind.small_disk.disk = "160M";
  // Writes to the log need no room elsewhere: it is the log that runs out of space.
  kind.fill_log = "SELECT pg_logical_emit_message(false, 'ballast', repeat('x', 4000000))";
  kind.make_user = "CREATE USER {} PASSWORD 'only-for-clerks'";
  kind.grant_more = "GRANT USAGE ON SEQUENCE effect_number_seq TO {}";
  kind.verify = "?sslmode=verify-full&sslrootcert={}";
  kind.require = "?sslmode=require";
  kind.is_encrypted = "SELECT 1 FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl";
  kind.other_name = "localhost";
  kind.make_place = "CREATE SCHEMA ";
  kind.old_schemas = {
      postgres_schema_1, std::string(postgres_schema_1) + postgres_schema_2,
      std::string(postgres_schema_1) + postgres_schema_2 + postgres_schema_3,
      std::string(postgres_schema_1) + postgres_schema_2 + postgres_schema_3 + postgres_schema_4};
  kind.old_ledger_columns = "scope, id, born_ms, recorded_ms, at_offset, source_partition, outcome";
  kind.old_ledger_row = "(2, '{}', {}, 1, {}, 3, 0)";
  return kind;
}

INSTANTIATE_TEST_SUITE_P(Postgres, LiveSuite, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, FullDisk, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, LostRights, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, Encrypted, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, LateCommit, ::testing::Values(postgres()));
INSTANTIATE_TEST_SUITE_P(Postgres, OldSchema, ::testing::Values(postgres()));

std::string with(const std::string& url, const std::string& from, const std::string& to) {
  std::string changed = url;
  changed.replace(changed.find(from), from.size(), to);
  return changed;
}

// The hot path: the update stays in its page and writes no index, with all that it records.
TEST(PostgresLive, an_advance_with_its_progress_is_a_hot_update) {
  const auto store = open_postgresql_store(Home::in(Home::make_place())).value();
  const Position taken = store->take("shop", "p0", "topic").value();
  auto transaction = store->begin("shop").value();
  const auto hot_updates = [&] {
    const auto counted = transaction->sql()->query(
        "SELECT pg_stat_get_xact_tuples_hot_updated(oid) FROM pg_class "
        "WHERE relname = 'once_position' AND pg_table_is_visible(oid)");
    return std::get<std::int64_t>(counted.value().at(0).at(0));
  };
  const std::int64_t before = hot_updates();
  for (std::int64_t i = 0; i < 5; ++i)
    ASSERT_TRUE(transaction->advance(
        "p0", {i == 0 ? -1 : i, taken.fence}, i + 1,
        {.settled_ms = i, .waiting_ms = i, .drained = true, .witness = {i, 7}}));
  EXPECT_EQ(hot_updates() - before, 5);
}

TEST(PostgresLive, wrong_credentials_and_databases_are_told_apart_and_secrets_are_not_shown) {
  const std::string url = server().url();
  const auto wrong_password = open_postgresql_store(with(url, "once-test-secret", "hush"));
  ASSERT_FALSE(wrong_password);
  EXPECT_EQ(wrong_password.error().tag, "denied");
  EXPECT_EQ(wrong_password.error().remedy, Remedy::stop);
  EXPECT_EQ(wrong_password.error().text.find("hush"), std::string::npos);
  const auto wrong_database = open_postgresql_store(url + "_not_there");
  ASSERT_FALSE(wrong_database);
  EXPECT_EQ(wrong_database.error().tag, "missing");
  EXPECT_EQ(wrong_database.error().text.find("once-test-secret"), std::string::npos);
  const auto nobody = open_postgresql_store("postgresql://once:x@127.0.0.1:1/once");
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().tag, "away");
  EXPECT_EQ(nobody.error().remedy, Remedy::retry);
}

// They would be waited for without end.
TEST(PostgresLive, mistakes_in_the_parameters_of_a_url_are_named_and_not_waited_for) {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {"passwrd=x", "passwrd"},
      {"sslmode=bogus", "sslmode"},
      {"connect_timeout=abc", "connect_timeout"},
      {"target_session_attrs=bogus", "target_session_attrs"},
      {"options=-cfoo%3Dbar", "foo"},
      {"client_encoding=bogus", "client_encoding"},
      {"service=nope", "service"},
      {"hostaddr=notanip", "hostaddr"}};
  for (const auto& [parameter, name] : mistakes) {
    const auto refused = open_postgresql_store(server().url() + "?" + parameter);
    ASSERT_FALSE(refused) << parameter;
    EXPECT_EQ(refused.error().remedy, Remedy::stop) << refused.error().text;
    EXPECT_EQ(refused.error().tag, "config") << refused.error().text;
    EXPECT_NE(refused.error().text.find(name), std::string::npos) << refused.error().text;
    EXPECT_EQ(refused.error().text.find("once-test-secret"), std::string::npos);
  }
}

TEST(PostgresLive, missing_rights_are_named) {
  administer(
      "DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guest'; "
      "REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE SCHEMA closed;");
  const std::string url = with(server().url(), "once:once-test-secret", "guest:guest");
  const auto denied = open_postgresql_store(Home::in("closed", url));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().remedy, Remedy::stop);
  EXPECT_TRUE(denied.error().tag == "denied" || denied.error().tag == "sql") << denied.error().text;
}

TEST(PostgresLive, a_schema_of_a_newer_program_is_refused) {
  administer("CREATE SCHEMA newer;");
  const std::string url = Home::in("newer");
  ASSERT_TRUE(open_postgresql_store(url));
  administer("UPDATE newer.once_schema SET version = 99;");
  const auto refused = open_postgresql_store(url);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "newer");
}

TEST(PostgresLive, a_migration_that_fails_in_the_middle_leaves_nothing) {
  const std::string place = Home::make_place();
  administer("CREATE TABLE " + place + ".once_counter (in_the_way INTEGER)");
  const auto failed = open_postgresql_store(Home::in(place));
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().text.find("once_counter"), std::string::npos) << failed.error().text;
  auto connection = PgConnection::open(server().url(), "admin").value();
  const auto tables = connection->ask(
      "SELECT relname FROM pg_class WHERE relnamespace = ?::regnamespace AND relkind = 'r'",
      {place});
  ASSERT_TRUE(tables) << tables.error().text;
  ASSERT_EQ((*tables)->rows(), 1);
  EXPECT_EQ((*tables)->bytes(0, 0), "once_counter");
  administer("DROP TABLE " + place + ".once_counter");
  auto store = open_postgresql_store(Home::in(place));
  ASSERT_TRUE(store) << store.error().text;
  EXPECT_TRUE((*store)->take("shop", "p0"));
}

TEST(PostgresLive, H22_settings_that_lose_commits_are_refused) {
  administer("ALTER ROLE once SET synchronous_commit = off;");
  const auto refused = open_postgresql_store(server().url());
  administer("ALTER ROLE once RESET synchronous_commit;");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "unsafe");
  EXPECT_NE(refused.error().text.find("synchronous_commit"), std::string::npos);
  EXPECT_TRUE(open_postgresql_store(server().url()));
}

TEST(PostgresLive, many_programs_make_the_schema_at_once) {
  administer("CREATE SCHEMA together;");
  const std::string url = Home::in("together");
  std::vector<std::thread> programs;
  for (int i = 0; i < 8; ++i)
    programs.emplace_back([&] {
      const auto store = open_postgresql_store(url);
      EXPECT_TRUE(store) << store.error().text;
    });
  for (std::thread& program : programs) program.join();
}

// A statement that got past all checks: it is an error of its own, and not one of a rival.
TEST(PostgresLive, a_transaction_that_is_gone_is_an_error_of_its_own) {
  auto connection = PgConnection::open(server().url(), "here").value();
  for (const char* statement : {"COMMIT", "ROLLBACK", "END", "ABORT"})
    for (const bool waits : {false, true}) {
      ASSERT_TRUE(connection->begin());
      ASSERT_TRUE(connection->send("SELECT 1"));
      ASSERT_TRUE(connection->send(statement));
      Status done = waits ? connection->sync() : Status();
      if (done) {
        ASSERT_FALSE(waits) << statement;
        ASSERT_TRUE(connection->commit());
        done = connection->sync();
      }
      ASSERT_FALSE(done) << statement;
      EXPECT_EQ(done.error().tag, "transaction_lost") << done.error().text;
      EXPECT_EQ(done.error().remedy, Remedy::stop);
      ASSERT_TRUE(connection->reset());
    }
  ASSERT_TRUE(connection->begin());
  ASSERT_TRUE(connection->send("SELECT 1"));
  ASSERT_TRUE(connection->commit());
  EXPECT_TRUE(connection->sync());
}

TEST(PostgresLive, a_procedure_cannot_commit) {
  const std::string place = Home::make_place();
  administer(
      fmt::format("CREATE PROCEDURE {}.bad() LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$", place));
  auto store = open_postgresql_store(Home::in(place)).value();
  auto transaction = store->begin("shop").value();
  ASSERT_TRUE(transaction->admit(std::vector{entry("a")}));
  ASSERT_TRUE(transaction->sql()->execute("CALL bad()"));
  const Status done = transaction->commit();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().remedy, Remedy::stop) << done.error().text;
  transaction.reset();
  EXPECT_EQ(store->records()->find("shop", "a").value(), std::nullopt);
}

TEST(PostgresLive, a_connection_that_would_find_other_tables_is_refused) {
  const std::string other = Home::make_place();
  const std::string place = Home::make_place();
  ASSERT_TRUE(open_postgresql_store(Home::in(other)));
  administer("CREATE ROLE wanderer LOGIN PASSWORD 'wander' SUPERUSER");
  administer(fmt::format("ALTER ROLE wanderer SET search_path = {}", place));
  const std::string url = with(server().url(), "once:once-test-secret", "wanderer:wander");
  auto store = open_postgresql_store(url).value();
  administer(fmt::format("ALTER ROLE wanderer SET search_path = {}", other));
  const auto first = store->begin("shop");  // needs a connection, and finds another ledger
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().tag, "config");
  EXPECT_NE(first.error().text.find(other), std::string::npos) << first.error().text;
  administer(fmt::format("ALTER ROLE wanderer SET search_path = {}", place));
  EXPECT_TRUE(store->begin("shop"));
}

TEST(PostgresLive, tables_of_its_own_that_a_crash_empties_are_refused) {
  const std::string place = Home::make_place();
  ASSERT_TRUE(open_postgresql_store(Home::in(place)));
  administer(fmt::format("ALTER TABLE {}.once_ledger SET UNLOGGED", place));
  const auto refused = open_postgresql_store(Home::in(place));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().tag, "unsafe");
}

TEST(PostgresLive, H23_a_transaction_that_commits_late_is_not_skipped_by_the_relay) {
  administer("CREATE SCHEMA late;");
  auto store = open_postgresql_store(Home::in("late")).value();
  auto early = store->begin("a").value();
  ASSERT_TRUE(early->enqueue("points", {.id = "took its number first"}));
  ASSERT_TRUE(early->sql()->query("SELECT 1"));  // sent
  auto quick = store->begin("a").value();
  ASSERT_TRUE(quick->enqueue("points", {.id = "committed first"}));
  ASSERT_TRUE(quick->commit());
  const std::uint64_t fence = store->take(relay_scope, "points").value().fence;
  const auto send_all = [&] {
    std::vector<std::string> ids;
    const auto pending = store->outbox()->pending("points", 10).value();
    for (const OutboxRow& row : pending) {
      ids.push_back(row.message.id);
      const std::uint32_t partition = 0;
      EXPECT_TRUE(store->outbox()->assign("points", fence, std::span(&row.number, 1),
                                          std::span(&partition, 1)));
      EXPECT_TRUE(store->outbox()->sent("points", fence, std::span(&row.number, 1)));
    }
    return ids;
  };
  EXPECT_EQ(send_all(), std::vector<std::string>{"committed first"});
  ASSERT_TRUE(early->commit());
  EXPECT_EQ(send_all(), std::vector<std::string>{"took its number first"});
}

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::server());
}
