// SPDX-License-Identifier: Apache-2.0
#include "model/handler_statement.h"

#include <gtest/gtest.h>

namespace once {
namespace {

constexpr SqlDialect sqlite = SqlDialect::sqlite;
constexpr SqlDialect postgres = SqlDialect::postgresql;
constexpr SqlDialect mysql = SqlDialect::mysql;

TEST(HandlerStatement, may_not_end_the_transaction_or_write_the_books) {
  for (const SqlDialect dialect : {sqlite, postgres, mysql}) {
    for (const char* text :
         {"COMMIT", "  commit", "-- x\nROLLBACK", "/* a */ Savepoint a", "END", "COPY t FROM STDIN",
          "DELETE FROM once_ledger", "", " -- nothing", "(COMMIT)", "EXECUTE x",
          "WITH a AS (DELETE FROM ONCE_OUTBOX RETURNING 1) SELECT * FROM a",
          "SELECT * INTO once_ledger FROM other"}) {
      const Status checked = check_handler_statement(text, dialect);
      ASSERT_FALSE(checked) << text;
      EXPECT_EQ(checked.error().tag, "sql") << text;
      EXPECT_EQ(checked.error().remedy, Remedy::stop) << text;
    }
    for (const char* text :
         {"SELECT * FROM once_ledger_readable", "UPDATE account SET note = 'once_ledger'",
          "INSERT INTO commit_log VALUES ('COMMIT')", "UPDATE once_counter SET last = 1"})
      EXPECT_TRUE(check_handler_statement(text, dialect)) << text;
  }
}

TEST(HandlerStatement, what_cannot_run_in_a_transaction_is_refused) {
  for (const char* text :
       {"VACUUM", "vacuum full t", "CREATE DATABASE d", "DROP TABLESPACE s",
        "ALTER SYSTEM SET fsync = on", "CREATE INDEX CONCURRENTLY i ON t (a)",
        "CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", "DROP INDEX CONCURRENTLY i",
        "REINDEX INDEX CONCURRENTLY i", "ALTER TABLE t DETACH PARTITION p CONCURRENTLY"}) {
    const Status checked = check_handler_statement(text, postgres);
    ASSERT_FALSE(checked) << text;
    EXPECT_NE(checked.error().text.find("cannot run inside a transaction"), std::string::npos)
        << text;
  }
  EXPECT_FALSE(check_handler_statement("VACUUM", sqlite));
  for (const char* text : {"CREATE INDEX i ON t (a)", "REFRESH MATERIALIZED VIEW CONCURRENTLY v",
                           "CREATE TEMP TABLE t (a int)", "INSERT INTO database VALUES (1)"})
    EXPECT_TRUE(check_handler_statement(text, postgres)) << text;
}

TEST(HandlerStatement, quoted_names_of_books_are_seen_in_every_dialect) {
  EXPECT_FALSE(check_handler_statement("DELETE FROM `once_ledger`", mysql));
  EXPECT_TRUE(check_handler_statement("DELETE FROM `twice_ledger`", mysql));
  EXPECT_TRUE(check_handler_statement("UPDATE a SET b = \"once_ledger\"", mysql));
  EXPECT_FALSE(check_handler_statement("DELETE FROM \"once_ledger\"", postgres));
  EXPECT_FALSE(check_handler_statement("DELETE FROM [once_ledger]", sqlite));
}

TEST(HandlerStatement, what_commits_by_itself_on_mysql_is_refused_there) {
  for (const char* text : {"TRUNCATE t",
                           "truncate table t",
                           "CREATE TABLE t (a INT)",
                           "DROP TABLE t",
                           "ALTER TABLE t ADD b INT",
                           "RENAME TABLE t TO u",
                           "CREATE INDEX i ON t (a)",
                           "CREATE TRIGGER x AFTER INSERT ON t FOR EACH ROW SET @a = 1",
                           "LOCK TABLES t WRITE",
                           "UNLOCK TABLES",
                           "GRANT SELECT ON t TO u",
                           "ANALYZE TABLE t",
                           "OPTIMIZE TABLE t",
                           "FLUSH TABLES",
                           "LOAD DATA INFILE 'x' INTO TABLE t",
                           "USE other",
                           "SET autocommit = 1",
                           "SET SESSION autocommit = 0",
                           "SET @@autocommit = 1",
                           "SET @@session.autocommit = 1",
                           "SET @a = 1, autocommit = 1",
                           "SET STATEMENT max_statement_time = 1 FOR TRUNCATE t",
                           "SET PASSWORD = 'x'",
                           "SET TRANSACTION READ ONLY",
                           "SET SESSION TRANSACTION READ ONLY",
                           "SET completion_type = 1",
                           "IF 1 THEN COMMIT",
                           "/* why */ TRUNCATE t",
                           "EXECUTE IMMEDIATE 'COMMIT'",
                           "KILL 1",
                           "CREATE TEMPORARY SEQUENCE s"}) {
    const Status checked = check_handler_statement(text, mysql);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().tag, "sql") << text;
  }
  for (const char* text :
       {"SELECT 1", "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t",
        "REPLACE INTO t VALUES (1)", "WITH a AS (SELECT 1) SELECT * FROM a", "CALL p(?)", "DO f(1)",
        "SET @a = 1", "SET @statement = 1", "SET @autocommit = 1",
        "CREATE TEMPORARY TABLE t (a INT)", "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
        "DROP TEMPORARY TABLE t", "(SELECT 1)", "EXPLAIN UPDATE t SET a = 1"})
    EXPECT_TRUE(check_handler_statement(text, mysql)) << text;
  // A schema belongs to the transaction there.
  for (const char* text : {"CREATE TABLE t (a INT)", "DROP TABLE t", "ALTER TABLE t ADD b INT"}) {
    EXPECT_TRUE(check_handler_statement(text, postgres)) << text;
    EXPECT_TRUE(check_handler_statement(text, sqlite)) << text;
  }
}

// The other messages of a batch share it: what they do would depend on the size of the batch.
TEST(HandlerStatement, may_not_change_the_session_in_any_dialect) {
  const auto expect_refused = [](const char* text, SqlDialect dialect) {
    const Status checked = check_handler_statement(text, dialect);
    ASSERT_FALSE(checked) << text;
    EXPECT_NE(checked.error().text.find("changes the session"), std::string::npos)
        << checked.error().text;
  };
  for (const char* text :
       {"SET sql_mode = ''", "SET SESSION sql_mode = ''", "SET GLOBAL sql_mode = ''",
        "SET @@sql_mode = ''", "SET @@session.sql_mode = ''", "SET NAMES latin1",
        "SET CHARACTER SET latin1", "SET ROLE other", "SET TRANSACTION READ ONLY",
        "SET @a = 1, sql_mode = ''", "SET @a = (SELECT max(b, c) FROM t), sql_mode = ''",
        "/* why */ SET time_zone = '+09:00', @a = 1", "SET @a = 1, @@autocommit = 1", "USE other",
        "SET", "SET @"})
    expect_refused(text, mysql);
  for (const char* text :
       {"SET search_path = other", "SET LOCAL search_path TO other", "SET SCHEMA 'other'",
        "SET ROLE other", "SET SESSION AUTHORIZATION other", "RESET search_path", "RESET ROLE",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION READ ONLY",
        "SET work_mem = '64MB'", "SET LOCAL app.user = 'ann'", "SET CONSTRAINTS ALL DEFERRED",
        "SET TIME ZONE 'Asia/Tokyo'", "RESET ALL", "LOAD 'library'"})
    expect_refused(text, postgres);
  for (const char* text : {"PRAGMA foreign_keys = 0", "ATTACH 'b.db' AS b", "DETACH b"})
    expect_refused(text, sqlite);
  for (const char* text :
       {"SET @a = 1", "SET @a := (SELECT max(b, c) FROM t), @b = 'x, y'", "set @`a` = 1 -- why",
        "SELECT @a := 1", "/* why */ SET @a = @@sql_mode"})
    EXPECT_TRUE(check_handler_statement(text, mysql)) << text;
  EXPECT_TRUE(check_handler_statement("SELECT set_config('app.user', ?, true)", postgres));
}

TEST(HandlerStatement, may_not_make_the_books_hard_to_find_on_postgresql) {
  for (const char* text : {"SELECT set_config('search_path', 'other', true)",
                           "SELECT set_config('role', 'other', true)"})
    EXPECT_FALSE(check_handler_statement(text, postgres)) << text;
  EXPECT_TRUE(check_handler_statement("SELECT 'role' FROM t", postgres));
}

TEST(HandlerStatement, names_with_unicode_escapes_are_refused_on_postgresql) {
  for (const char* text :
       {"INSERT INTO U&\"f\\0061st\" VALUES (1)", "UPDATE u&\"fast\" SET a = 1"}) {
    const Status refused = check_handler_statement(text, postgres);
    ASSERT_FALSE(refused) << text;
    EXPECT_NE(refused.error().text.find("Unicode escapes"), std::string::npos);
  }
  for (const char* text : {"UPDATE t SET a = u & \"b\"", "UPDATE t SET a = U&'x'",
                           "UPDATE \"u&\" SET a = 1", "UPDATE t SET a = b&\"c\""})
    EXPECT_TRUE(check_handler_statement(text, postgres)) << text;
  EXPECT_TRUE(check_handler_statement("UPDATE t SET a = u&\"b\"", sqlite));
}

TEST(HandlerStatement, the_reason_is_the_one_that_holds) {
  const auto reason = [](const char* text) {
    return check_handler_statement(text, mysql).error().text;
  };
  EXPECT_NE(reason("/*!50000 COMMIT */").find("in the comment"), std::string::npos);
  EXPECT_NE(reason("SELECT 1 /*M! INTO OUTFILE 'x' */").find("in the comment"), std::string::npos);
  EXPECT_NE(reason("KILL 1").find("a handler may only"), std::string::npos);
  EXPECT_EQ(reason("KILL 1").find("this commits"), std::string::npos);
  EXPECT_TRUE(check_handler_statement("SELECT 1 /*! not there */", sqlite));
}

TEST(HandlerStatement, what_may_change_the_session_is_known) {
  for (const char* text : {"SELECT set_config(?, ?, false)", "LISTEN x",
                           "CREATE TEMP TABLE t (a INT)", "SELECT pg_advisory_lock(1)", "CALL p()",
                           "SELECT 1 AS a INTO TEMP t", "DO $$ BEGIN END $$"})
    EXPECT_TRUE(may_change_session(text, postgres)) << text;
  for (const char* text : {"SELECT 1", "INSERT INTO t VALUES (?)",
                           "WITH a AS (SELECT 1) SELECT * FROM a", "UPDATE t SET a = a || '@'"})
    EXPECT_FALSE(may_change_session(text, postgres)) << text;
  EXPECT_TRUE(may_change_session("SELECT @a := 1", mysql));
  EXPECT_TRUE(may_change_session("SELECT GET_LOCK('x', 1)", mysql));
  EXPECT_TRUE(may_change_session("SET @a = 1", mysql));
  EXPECT_FALSE(may_change_session("UPDATE t SET a = '@' WHERE b = ?", mysql));
}

TEST(HandlerStatement, the_first_keyword_stands_behind_comments_and_brackets) {
  EXPECT_EQ(first_keyword("-- why\n /* and */ (Select 1)", mysql), "select");
  EXPECT_EQ(first_keyword("# why\nUPDATE a", mysql), "update");
  EXPECT_EQ(first_keyword("  ", sqlite), "");
}

}  // namespace
}  // namespace once
