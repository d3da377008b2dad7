// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "conformance/store_suite_sql.h"

namespace once::testing {

// Statements at the border of a transaction: that would end it, outlive it or not be part of it.
class BorderSuite : public SqlStoreSuite {
 protected:
  SqlDialect dialect() { return begin()->sql()->dialect(); }
  bool is_mysql() { return dialect() == SqlDialect::mysql; }
  bool is_postgres() { return dialect() == SqlDialect::postgresql; }

  // As a pipeline does: what the store could not do now is done again.
  Status repeated(const std::function<Status(SqlTransaction&)>& writes) {
    for (int attempt = 1;; ++attempt) {
      Status done = outcome_of(writes);
      if (done || done.error().remedy != Remedy::retry || attempt == 5) return done;
    }
  }
  std::string text_of(const std::string& query) {
    const Rows found = begin()->sql()->query(query).value();
    const Field& field = found.at(0).at(0);
    if (const auto* text = std::get_if<std::string>(&field)) return *text;
    const auto* number = std::get_if<std::int64_t>(&field);
    return number != nullptr ? std::to_string(*number) : "NULL";
  }
};

TEST_P(BorderSuite, rows_are_those_of_the_statement_itself) {
  const std::string kind = is_mysql() ? "TEMPORARY TABLE" : "TABLE";
  auto transaction = begin();
  SqlTransaction& sql = *transaction->sql();
  EXPECT_EQ(sql.run("UPDATE account SET balance = balance").value(), 3);
  EXPECT_EQ(sql.run("CREATE " + kind + " made (a INTEGER)").value(), 0);
  EXPECT_EQ(sql.run("INSERT INTO made VALUES (1), (2)").value(), 2);
  ASSERT_TRUE(sql.execute("DROP " + kind + " made", {}, rows(0)));
  EXPECT_EQ(sql.run("DELETE FROM account WHERE id = 99").value(), 0);
  ASSERT_TRUE(transaction->commit());
}

TEST_P(BorderSuite, foreign_keys_are_enforced) {
  define("CREATE TABLE parent (id INTEGER PRIMARY KEY)");
  define(
      "CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, "
      "FOREIGN KEY (parent) REFERENCES parent (id))");
  ASSERT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    ONCE_TRY(sql.execute("INSERT INTO parent VALUES (1)"));
    return sql.execute("INSERT INTO child VALUES (1, 1)");
  }));
  for (const char* statement :
       {"INSERT INTO child VALUES (2, 7)", "DELETE FROM parent", "UPDATE child SET parent = 9"}) {
    const Status status = outcome_of([&](SqlTransaction& sql) { return sql.execute(statement); });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().remedy, Remedy::park) << status.error().text;
    EXPECT_EQ(status.error().tag, "constraint") << status.error().text;
  }
}

TEST_P(BorderSuite, what_would_commit_by_itself_is_refused_and_nothing_is_kept) {
  if (!is_mysql()) return;
  for (const char* statement :
       {"TRUNCATE account", "CREATE TABLE t (a INT)", "DROP TABLE account",
        "ALTER TABLE account ADD note INT", "LOCK TABLES account WRITE", "SET autocommit = 1",
        "/*!50000 COMMIT */", "SET STATEMENT max_statement_time = 9 FOR TRUNCATE account",
        "START TRANSACTION", "XA START 'x'", "BEGIN NOT ATOMIC COMMIT; END",
        "/* why */ TRUNCATE account"}) {
    const std::vector<Entry> entries{entry("a")};
    auto transaction = begin();
    ASSERT_TRUE(transaction->admit(entries));
    ASSERT_TRUE(transaction->sql()->execute(add_sql, {7, 2}));
    Status status = transaction->sql()->execute(statement);
    if (status) status = transaction->commit();
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().remedy, Remedy::stop) << status.error().text;
    EXPECT_EQ(status.error().tag, "sql") << status.error().text;
    transaction.reset();
    EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100})) << statement;
    EXPECT_EQ(store().records()->find("shop", "a").value(), std::nullopt) << statement;
  }
}

TEST_P(BorderSuite, a_procedure_can_write_and_cannot_commit) {
  if (!is_mysql()) return;
  define("CREATE PROCEDURE good(IN n INT) UPDATE account SET balance = balance + n WHERE id = 1");
  define(
      "EXECUTE IMMEDIATE 'CREATE PROCEDURE bad() BEGIN UPDATE account SET balance = 0; COMMIT; "
      "START TRANSACTION; UPDATE account SET balance = 1; END'");
  define(
      "EXECUTE IMMEDIATE 'CREATE PROCEDURE worse() BEGIN UPDATE account SET balance = 0; "
      "TRUNCATE effect; END'");
  ASSERT_TRUE(repeated([](SqlTransaction& sql) -> Status {
    for (int i = 0; i < 40; ++i) ONCE_TRY(sql.execute("CALL good(?)", {1}));
    for (int i = 0; i < 40; ++i) ONCE_TRY(sql.execute(add_sql, {1, 2}, rows(1)));
    return {};
  }));
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{140, 140, 100}));
  for (const char* statement : {"CALL bad()", "CALL worse()"}) {
    const Status status = repeated([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.admit(std::vector{entry("a")}));
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      ONCE_TRY(sql.execute(statement));
      return sql.execute(add_sql, {7, 3});
    });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().remedy, Remedy::stop) << status.error().text;
    EXPECT_NE(status.error().text.find("may neither commit"), std::string::npos)
        << status.error().text;
    EXPECT_EQ(balances(), (std::vector<std::int64_t>{140, 140, 100})) << statement;
    EXPECT_EQ(store().records()->find("shop", "a").value(), std::nullopt) << statement;
  }
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
  // A rival ends a guarded transaction as any other.
  auto blocked = begin();
  ASSERT_TRUE(blocked->sql()->run(add_sql, {1, 1}));
  blocked.reset();
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{140, 140, 100}));
}

// It would hold for the next message of the batch, but not for the first of the next batch.
TEST_P(BorderSuite, what_changes_the_session_is_refused_and_nothing_is_kept) {
  std::vector<std::string> changes{"PRAGMA foreign_keys = 0", "ATTACH ':memory:' AS other"};
  if (is_mysql())
    changes = {"SET SESSION sql_mode = ''", "SET NAMES latin1", "USE other", "SET ROLE none",
               "SET @mine = 1, foreign_key_checks = 0"};
  else if (is_postgres())
    changes = {"SET lock_timeout = '1h'", "SET LOCAL timezone = 'Asia/Tokyo'", "RESET ALL",
               "SET TRANSACTION READ ONLY", "SET CONSTRAINTS ALL DEFERRED"};
  for (const std::string& change : changes) {
    const Status status = outcome_of([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      return sql.execute(change);
    });
    ASSERT_FALSE(status) << change;
    EXPECT_EQ(status.error().remedy, Remedy::stop) << status.error().text;
    EXPECT_EQ(status.error().tag, "sql") << status.error().text;
    EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100})) << change;
  }
}

TEST_P(BorderSuite, what_a_handler_changes_in_the_session_is_gone_for_the_next) {
  std::vector<std::string> changes, looks;
  if (is_mysql()) {
    // What the server cannot tell us about: settings in a procedure.
    define(
        "CREATE PROCEDURE settings() SET SESSION time_zone = '+09:00', foreign_key_checks = 0, "
        "character_set_client = 'latin1'");
    ASSERT_TRUE(repeated([](SqlTransaction& sql) { return sql.execute("CALL settings()"); }));
    changes = {"SET @mine = 5", "CALL settings()", "CREATE TEMPORARY TABLE account (id INTEGER)",
               "DO GET_LOCK('mine', 0)"};
    looks = {
        "SELECT CONCAT_WS(' ', @@sql_mode, @@time_zone, @@foreign_key_checks, "
        "@@character_set_client, IFNULL(@mine, 'none'), IS_FREE_LOCK('mine'))"};
  } else if (is_postgres()) {
    changes = {"SELECT set_config('datestyle', 'SQL, DMY', false)",
               "SELECT set_config('timezone', 'Asia/Tokyo', false)",
               "SELECT set_config('app.mine', '5', false)",
               "SELECT set_config('lock_timeout', '1h', false)",
               "CREATE TEMPORARY TABLE account (id INTEGER)",
               "SELECT pg_advisory_lock(77)"};
    looks = {
        "SELECT concat_ws(' ', current_setting('datestyle'), current_setting('timezone'), "
        "current_setting('lock_timeout'), NULLIF(current_setting('app.mine', true), ''), "
        "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77))"};
  } else {
    changes = {"CREATE TEMPORARY TABLE unrelated (id INTEGER)"};
    looks = {"SELECT 1"};
  }
  std::vector<std::string> before;
  for (const std::string& look : looks) before.push_back(text_of(look));
  for (const bool commits : {true, false}) {
    auto transaction = begin();
    for (const std::string& change : changes) {
      const auto done = transaction->sql()->query(change);
      ASSERT_TRUE(done) << change << ": " << done.error().text;
    }
    if (commits) {
      ASSERT_TRUE(transaction->commit());
    }
    transaction.reset();
    for (std::size_t i = 0; i < looks.size(); ++i) EXPECT_EQ(text_of(looks[i]), before[i]);
    EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
    EXPECT_EQ(kind_of(entry(commits ? "a" : "b")), Kind::fresh);
    if (dialect() == SqlDialect::sqlite) return;  // a connection for all, and no settings
  }
}

// Writes through what is not transactional itself, and through what stands before it.
TEST_P(BorderSuite, tables_without_transactions_are_refused) {
  std::vector<std::string> tables, writes;
  if (is_mysql()) {
    tables = {"CREATE TABLE isam (a INT) ENGINE = MyISAM",
              "CREATE TABLE aria (a INT) ENGINE = Aria",
              "CREATE TABLE memory (a INT) ENGINE = MEMORY",
              "CREATE TABLE plain (a INT)",
              "CREATE VIEW seen AS SELECT a FROM isam",
              "CREATE TABLE noted (a INT)",
              "CREATE TRIGGER note AFTER INSERT ON noted FOR EACH ROW INSERT INTO isam VALUES (1)",
              "CREATE PROCEDURE called() INSERT INTO isam VALUES (1)"};
    writes = {"INSERT INTO isam VALUES (1)",
              "INSERT INTO aria VALUES (1)",
              "UPDATE memory SET a = 1",
              "DELETE FROM isam",
              "INSERT INTO seen VALUES (1)",
              "INSERT INTO noted VALUES (1)",
              "CALL called()",
              "UPDATE plain JOIN isam ON plain.a = isam.a SET isam.a = 1"};
  } else if (is_postgres()) {
    tables = {"CREATE UNLOGGED TABLE fast (a INT)",
              "CREATE TABLE plain (a INT)",
              "CREATE VIEW seen AS SELECT a FROM fast",
              "CREATE TABLE whole (a INT) PARTITION BY LIST (a)",
              "CREATE UNLOGGED TABLE piece PARTITION OF whole FOR VALUES IN (1)",
              "CREATE TABLE noted (a INT)",
              "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
              "INSERT INTO fast VALUES (NEW.a); RETURN NEW; END $$",
              "CREATE TRIGGER note AFTER INSERT ON noted FOR EACH ROW EXECUTE FUNCTION note()"};
    writes = {"INSERT INTO fast VALUES (1)",
              "UPDATE fast SET a = 1",
              "DELETE FROM fast",
              "INSERT INTO seen VALUES (1)",
              "INSERT INTO whole VALUES (1)",
              "INSERT INTO noted VALUES (1)",
              "WITH x AS (DELETE FROM fast RETURNING a) INSERT INTO plain SELECT a FROM x"};
  }
  for (const std::string& table : tables) define(table);
  for (const std::string& write : writes) {
    const Status status = repeated([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      return sql.execute(write);
    });
    ASSERT_FALSE(status) << write;
    EXPECT_EQ(status.error().remedy, Remedy::stop) << write;
    EXPECT_EQ(status.error().tag, "unsafe") << write << ": " << status.error().text;
    EXPECT_NE(status.error().text.find("ALTER TABLE"), std::string::npos) << status.error().text;
  }
  EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100}));
  if (tables.empty()) return;
  EXPECT_TRUE(outcome_of([](SqlTransaction& sql) -> Status {
    return sql.execute("INSERT INTO plain SELECT count(*) FROM seen");
  }));
}

}  // namespace once::testing
