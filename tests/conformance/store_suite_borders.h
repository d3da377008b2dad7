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

// Statements that fail for the values of one message, the words of their reasons, and what has to
// be made for them.
struct Refusals {
  std::vector<std::string> made = {};
  std::vector<std::pair<std::string, std::string>> failing = {};
};

constexpr const char* too_much = "UPDATE account SET balance = 666 WHERE id = 1";

inline Refusals refusals_of_mysql() {
  Refusals of;
  of.made = {
      "EXECUTE IMMEDIATE 'CREATE TRIGGER refuse BEFORE UPDATE ON account FOR EACH ROW IF "
      "NEW.balance = 666 THEN SIGNAL SQLSTATE ''45000'' SET MYSQL_ERRNO = 1146, MESSAGE_TEXT = "
      "''not this amount''; END IF'",
      "EXECUTE IMMEDIATE 'CREATE FUNCTION several() RETURNS INT READS SQL DATA BEGIN DECLARE x "
      "INT; SELECT id INTO x FROM account; RETURN x; END'",
      "EXECUTE IMMEDIATE 'CREATE FUNCTION choose(n INT) RETURNS INT BEGIN CASE n WHEN 1 THEN "
      "RETURN 1; END CASE; END'",
      "CREATE VIEW small AS SELECT id, balance FROM account WHERE balance < 500 WITH CHECK "
      "OPTION"};
  of.failing = {
      {too_much, "not this amount"},
      {"UPDATE account SET balance = (SELECT id FROM account AS other)", "more than 1 row"},
      {"UPDATE account SET balance = several()", "more than one row"},
      {"UPDATE account SET balance = choose(2)", "Case not found"},
      {"UPDATE small SET balance = 501 WHERE id = 1", "CHECK OPTION"},
      {"SELECT * FROM JSON_TABLE('{', '$' COLUMNS (a INT PATH '$.a')) AS t", "JSON"},
      {"UPDATE account SET balance = 1 WHERE 'a' REGEXP '('", "Regex error"}};
  return of;
}

inline Refusals refusals_of_postgres() {
  Refusals of;
  const auto function = [&](const std::string& head, const std::string& body) {
    of.made.push_back("CREATE FUNCTION " + head + " LANGUAGE plpgsql AS $$ " + body + " $$");
  };
  function("refuse() RETURNS trigger",
           "BEGIN IF NEW.balance = 666 THEN RAISE EXCEPTION 'not this amount'; END IF; "
           "RETURN NEW; END");
  of.made.push_back(
      "CREATE TRIGGER refuse BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION refuse()");
  function("own() RETURNS int",
           "BEGIN RAISE EXCEPTION 'closed on Sunday' USING ERRCODE = 'SHOP1'; END");
  function("strict_one(n int) RETURNS int",
           "DECLARE x int; BEGIN SELECT id INTO STRICT x FROM account WHERE id >= n; "
           "RETURN x; END");
  function("choose(n int) RETURNS int", "BEGIN CASE n WHEN 1 THEN RETURN 1; END CASE; END");
  function("asserted() RETURNS int", "BEGIN ASSERT false, 'must not be'; RETURN 1; END");
  function("endless(n int) RETURNS int", "BEGIN IF n = 1 THEN RETURN 1; END IF; END");
  of.failing = {{too_much, "not this amount"},
                {"SELECT own()", "closed on Sunday"},
                {"UPDATE account SET balance = (SELECT id FROM account)", "more than one row"},
                {"SELECT strict_one(1)", "more than one row"},
                {"SELECT strict_one(99)", "no rows"},
                {"SELECT choose(2)", "case not found"},
                {"SELECT asserted()", "must not be"},
                {"SELECT endless(2)", "without RETURN"}};
  return of;
}

inline Refusals refusals_of_sqlite() {
  Refusals of;
  of.made = {
      "CREATE TRIGGER refuse BEFORE UPDATE ON account WHEN NEW.balance = 666 BEGIN SELECT "
      "RAISE(ABORT, 'not this amount'); END"};
  of.failing = {{too_much, "not this amount"},
                {"UPDATE account SET balance = json_extract('{', '$.a')", "malformed JSON"},
                {"SELECT json_extract('{', '$.a')", "malformed JSON"},
                {"UPDATE account SET balance = abs(-9223372036854775807 - 1)", "overflow"}};
  return of;
}

// A trigger, a function, a subquery or a conversion that fails for the values of one message: the
// database's words are the reason, and the message is to blame, not the pipeline.
TEST_P(BorderSuite, what_depends_on_the_values_of_a_message_is_to_be_parked) {
  const auto [made, failing] = is_mysql()      ? refusals_of_mysql()
                               : is_postgres() ? refusals_of_postgres()
                                               : refusals_of_sqlite();
  for (const std::string& statement : made) define(statement);
  for (const auto& one : failing) {
    const std::string& statement = one.first;
    const std::string& reason = one.second;
    const Status status = repeated([&](SqlTransaction& sql) -> Status {
      ONCE_TRY(sql.admit(std::vector{entry("a")}));
      ONCE_TRY(sql.execute(add_sql, {7, 2}));
      ONCE_TRY(sql.query(statement));
      return sql.execute(add_sql, {7, 3});
    });
    ASSERT_FALSE(status) << statement;
    EXPECT_EQ(status.error().remedy, Remedy::park) << status.error().text;
    EXPECT_EQ(status.error().tag, "constraint") << status.error().text;
    EXPECT_NE(status.error().text.find(reason), std::string::npos) << status.error().text;
    EXPECT_EQ(balances(), (std::vector<std::int64_t>{100, 100, 100})) << statement;
  }
  EXPECT_EQ(kind_of(entry("a")), Kind::fresh);
  // A mistake in the statement is nobody's message.
  const Status mistaken = outcome_of([](SqlTransaction& sql) -> Status {
    ONCE_TRY(sql.query("SELECT nothing_like_it FROM account"));
    return {};
  });
  ASSERT_FALSE(mistaken);
  EXPECT_EQ(mistaken.error().remedy, Remedy::stop) << mistaken.error().text;
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

// Tables without transactions and what stands before them, and statements that write through these.
struct Unsafe {
  std::vector<std::string> tables = {};
  std::vector<std::string> writes = {};
};

inline Unsafe unsafe_on_mysql() {
  Unsafe on;
  on.tables = {
      "CREATE TABLE isam (a INT) ENGINE = MyISAM",
      "CREATE TABLE aria (a INT) ENGINE = Aria",
      "CREATE TABLE memory (a INT) ENGINE = MEMORY",
      "CREATE TABLE plain (a INT)",
      "CREATE VIEW seen AS SELECT a FROM isam",
      "CREATE TABLE noted (a INT)",
      "CREATE TRIGGER note AFTER INSERT ON noted FOR EACH ROW INSERT INTO isam VALUES (1)",
      "CREATE PROCEDURE called() INSERT INTO isam VALUES (1)",
      "EXECUTE IMMEDIATE 'CREATE FUNCTION noting(n INT) RETURNS INT BEGIN INSERT INTO isam "
      "VALUES (n); RETURN n; END'",
      "CREATE FUNCTION deeper(n INT) RETURNS INT RETURN 1 + NOTING(n)",
      "CREATE FUNCTION reading(n INT) RETURNS INT RETURN (SELECT max(a) FROM isam)",
      "CREATE PROCEDURE through() SELECT deeper(1)"};
  on.writes = {"INSERT INTO isam VALUES (1)",
               "INSERT INTO aria VALUES (1)",
               "UPDATE memory SET a = 1",
               "DELETE FROM isam",
               "INSERT INTO seen VALUES (1)",
               "INSERT INTO noted VALUES (1)",
               "CALL called()",
               "CALL through()",
               "SELECT noting(1)",
               "INSERT INTO plain VALUES (deeper(1))",
               "UPDATE plain SET a = (SELECT 2 * `deeper` (a))",
               "UPDATE plain JOIN isam ON plain.a = isam.a SET isam.a = 1"};
  return on;
}

inline Unsafe unsafe_on_postgres() {
  Unsafe on;
  on.tables = {
      "CREATE TABLE fast (a INT)",
      "CREATE TABLE plain (a INT)",
      "CREATE VIEW seen AS SELECT a FROM fast",
      "CREATE TABLE whole (a INT) PARTITION BY LIST (a)",
      "CREATE UNLOGGED TABLE piece PARTITION OF whole FOR VALUES IN (1)",
      "CREATE TABLE noted (a INT)",
      "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO fast VALUES (NEW.a); RETURN NEW; END $$",
      "CREATE TRIGGER note AFTER INSERT ON noted FOR EACH ROW EXECUTE FUNCTION note()",
      "CREATE PROCEDURE called(n INT) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fast VALUES "
      "(n); END $$",
      "CREATE FUNCTION noting(n INT) RETURNS INT LANGUAGE sql AS $$ INSERT INTO fast "
      "VALUES (n) RETURNING a $$",
      "CREATE FUNCTION deeper(n INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN RETURN 1 + "
      "NOTING(n); END $$",
      "CREATE FUNCTION \"Atomic\"(n INT) RETURNS INT LANGUAGE sql BEGIN ATOMIC INSERT INTO "
      "fast VALUES (n) RETURNING a; END",
      "CREATE FUNCTION reading(n INT) RETURNS INT LANGUAGE sql AS $$ SELECT max(a) FROM "
      "fast $$",
      "CREATE TABLE defaulted (a INT, b INT DEFAULT noting(1))",
      "CREATE FUNCTION summing(s INT, n INT) RETURNS INT LANGUAGE sql AS $$ INSERT INTO fast "
      "VALUES (n) RETURNING a $$",
      "CREATE AGGREGATE summed(INT) (SFUNC = summing, STYPE = INT)",
      "CREATE DOMAIN checked AS INT CHECK (noting(VALUE) > 0)",
      "CREATE TABLE of_domain (a checked)",
      "CREATE TABLE with_check (a INT CHECK (noting(a) > 0))",
      "CREATE SCHEMA IF NOT EXISTS elsewhere",
      "CREATE TABLE IF NOT EXISTS elsewhere.hidden (a INT)",
      "CREATE FUNCTION guarded(n INT) RETURNS INT LANGUAGE sql SET search_path = "
      "elsewhere, pg_temp AS $$ INSERT INTO hidden VALUES (n) RETURNING a $$",
      "ALTER TABLE elsewhere.hidden SET UNLOGGED",
      "ALTER TABLE fast SET UNLOGGED"};
  on.writes = {"INSERT INTO fast VALUES (1)",
               "UPDATE fast SET a = 1",
               "DELETE FROM fast",
               "INSERT INTO seen VALUES (1)",
               "INSERT INTO whole VALUES (1)",
               "INSERT INTO noted VALUES (1)",
               "CALL called(1)",
               "SELECT noting(1)",
               "INSERT INTO plain VALUES (deeper(1))",
               "UPDATE plain SET a = (SELECT 2 * deeper (a))",
               "SELECT \"Atomic\"(1)",
               "INSERT INTO defaulted (a) VALUES (1)",
               "SELECT guarded(1)",
               "SELECT summed(a) FROM plain",
               "INSERT INTO of_domain VALUES (1)",
               "INSERT INTO with_check VALUES (1)",
               "WITH x AS (DELETE FROM fast RETURNING a) INSERT INTO plain SELECT a FROM x"};
  return on;
}

// Writes through what is not transactional itself, and through what stands before it.
TEST_P(BorderSuite, tables_without_transactions_are_refused) {
  const auto [tables, writes] = is_mysql()      ? unsafe_on_mysql()
                                : is_postgres() ? unsafe_on_postgres()
                                                : Unsafe{};
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
    ONCE_TRY(sql.execute("INSERT INTO plain SELECT count(*) FROM seen"));
    return sql.execute("INSERT INTO plain VALUES (coalesce(reading(1), 7))");
  }));
}

}  // namespace once::testing
