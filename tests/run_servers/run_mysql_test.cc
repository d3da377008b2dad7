// SPDX-License-Identifier: Apache-2.0
#include "run_servers/run_check_suite.h"
#include "run_servers/run_server_suite.h"
#include "run_servers/run_types_suite.h"
#include "testing/mysql_home.h"

namespace once::testing {
namespace {

using Home = MysqlHome;

Lines tables_in(const std::string& url) {
  const auto connection = MysqlConnection::open(MysqlAddress::parse(url).value()).value();
  const auto found = connection
                         ->ask(
                             "SELECT table_name FROM information_schema.tables WHERE "
                             "table_schema = database() ORDER BY 1")
                         .value();
  Lines names;
  for (int row = 0; row < found->rows(); ++row) names.push_back(found->bytes(row, 0));
  return names;
}

RunKind mariadb() {
  return {
      [] { return Home::in(Home::make_place()); },
      Home::administer,
      {"CREATE TABLE flow (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200) UNIQUE, account "
       "VARCHAR(10) NOT NULL, amount SMALLINT CHECK (amount > 0), day DATE, kind ENUM ('cash', "
       "'card')) COLLATE utf8mb4_bin",
       "CREATE TABLE account (name VARCHAR(200) PRIMARY KEY, balance BIGINT NOT NULL) COLLATE "
       "utf8mb4_bin",
       "CREATE TABLE typed (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200) UNIQUE, at "
       "DATETIME(6), ms BIGINT, flag BOOLEAN, price DECIMAL(40, 10)) COLLATE utf8mb4_bin"},
      "COALESCE(DATE_FORMAT(at, '%Y-%m-%d %H:%i:%s.%f'), 'none')",
      "CAST(price AS CHAR)",
      "[[do]]\nsql = \"UPDATE account SET balance = balance + 1 WHERE name = 'ann'\"\n[[do]]\n"
      "sql = \"SELECT balance, now(6) FROM account WHERE name = 'ann'\"\n"
      "into = { balance = \"integer\", at = \"timestamp\" }\n",
      {"EXECUTE IMMEDIATE 'CREATE TRIGGER refuse BEFORE INSERT ON flow FOR EACH ROW IF NEW.id LIKE "
       "''refuse%'' THEN SIGNAL SQLSTATE ''45000'' SET MYSQL_ERRNO = 31001, MESSAGE_TEXT = ''not "
       "this one''; END IF'"},
      {"EXECUTE IMMEDIATE 'CREATE TRIGGER say BEFORE INSERT ON flow FOR EACH ROW BEGIN DECLARE "
       "code INT DEFAULT 0; IF NEW.id LIKE ''raise %'' THEN SET code = SUBSTRING_INDEX(SUBSTR("
       "NEW.id, 7), '' '', 1); SIGNAL SQLSTATE ''HY000'' SET MYSQL_ERRNO = code, MESSAGE_TEXT = "
       "''it says so''; END IF; END'"},
      {"1142", "1064", "1146", "1442", "1456", "1977", "4084"},
      {"1205", "1213", "1021", "1317", "1969", "2013", "1053"},
      tables_in};
}

INSTANTIATE_TEST_SUITE_P(Mariadb, RunServer, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, RunTypes, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, RunCheck, ::testing::Values(mariadb()));

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

// Statements and tables with which no promise could be kept.
class Borders : public RunServer {
 protected:
  static std::string plan_with(const std::string& statement) {
    return changed(plan(), "[[emit]]", "[[do]]\nsql = \"" + statement + "\"\n[[emit]]");
  }
};

TEST_P(Borders, what_commits_by_itself_is_refused_before_anything_runs) {
  send(line("first"));
  for (const char* statement :
       {"TRUNCATE flow", "ALTER TABLE flow ADD note INT", "LOCK TABLES flow WRITE"})
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(plan_with(statement), check);
      EXPECT_EQ(answer.exit_code, 3) << answer.err;
      EXPECT_NE(answer.err.find("commits the transaction"), std::string::npos) << answer.err;
    }
  EXPECT_EQ(run(plan()).exit_code, 0);
  expect_books({"first"});
}

// The next messages of the batch would be handled with it, those of the next batch without.
TEST_P(Borders, what_changes_the_session_is_refused_before_anything_runs) {
  send(line("first") + line("much", {{"amount", 70'000}}));
  for (const char* statement : {"SET SESSION sql_mode = ''", "SET autocommit = 1", "USE other"})
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(plan_with(statement), check);
      EXPECT_EQ(answer.exit_code, 3) << answer.err;
      EXPECT_NE(answer.err.find("changes the session"), std::string::npos) << answer.err;
    }
  EXPECT_EQ(run(plan()).exit_code, 0);
  expect_books({"first"});
}

TEST_P(Borders, tables_without_transactions_are_refused_before_anything_runs) {
  define("CREATE TABLE isam (id VARCHAR(200)) ENGINE = MyISAM");
  send(line("first"));
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    const Answer answer = run(plan_with("INSERT INTO isam VALUES (:id)"), check);
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find("MyISAM"), std::string::npos) << answer.err;
  }
  EXPECT_EQ(sql("SELECT count(*) FROM isam"), Lines{"0"});
  EXPECT_EQ(run(plan()).exit_code, 0);
  expect_books({"first"});
}

// Nothing is lost, and nothing of what was refused is applied: the procedure is repaired, and the
// run goes on where it was.
TEST_P(Borders, a_procedure_that_commits_ends_the_run_and_leaves_nothing) {
  define("CREATE TABLE called (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200))");
  define(
      "EXECUTE IMMEDIATE 'CREATE PROCEDURE note(IN what VARCHAR(200)) BEGIN "
      "INSERT INTO called (id) VALUES (what); COMMIT; END'");
  Lines ids;
  std::string lines;
  for (int i = 0; i < 50; ++i) {
    ids.push_back("message " + std::to_string(i));
    lines += line(ids.back());
    if (i % 2 == 0) lines += line("eve " + std::to_string(i), {{"account", "eve"}});
  }
  send(lines);
  const std::string calling = plan_with("CALL note(:id)");
  const Answer refused = run(calling);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("may neither commit"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("fenced"), std::string::npos) << refused.err;
  expect_books({});
  EXPECT_EQ(sql("SELECT count(*) FROM called"), Lines{"0"});
  EXPECT_EQ(sql("SELECT count(*) FROM once_ledger"), Lines{"0"});
  define(
      "CREATE OR REPLACE PROCEDURE note(IN what VARCHAR(200)) "
      "INSERT INTO called (id) VALUES (what)");
  const Answer answer = run(calling, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 50);
  EXPECT_EQ(answer.json()["parked"], 25);
  expect_books(ids);
  EXPECT_EQ(sql("SELECT id FROM called ORDER BY n"), ids);
}

// A procedure answers once for each of its queries, and then for itself.
class Procedures : public Borders {
 protected:
  // It notes the id, then answers with the rows of so many queries.
  void define_note(int queries, const std::string& end = "") {
    std::string body = "INSERT INTO called (id) VALUES (what);";
    for (int i = 0; i < queries; ++i) body += " SELECT id FROM called;";
    define(
        "EXECUTE IMMEDIATE \"CREATE OR REPLACE PROCEDURE note(IN what VARCHAR(200), OUT told "
        "VARCHAR(200)) BEGIN " +
        body + end + " SET told = CONCAT('told ', what); END\"");
  }
  void SetUp() override {
    RunServer::SetUp();
    define("CREATE TABLE called (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200))");
  }
};

// What another step expects, the database refuses or the procedure answers meets its own message
// only: every id has all of its effects, or is parked and has none.
TEST_P(Procedures, answers_of_calls_are_told_from_those_of_other_statements) {
  define("CREATE TABLE told (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(200))");
  Lines ids;
  for (const int queries : {0, 1, 2, 3}) {
    define_note(queries);
    std::string lines;
    const auto name = [&](const std::string& kind, int i) {
      return kind + " " + std::to_string(queries) + "." + std::to_string(i);
    };
    for (int i = 0; i < 8; ++i) {
      ids.push_back(name("ann", i));
      lines += line(ids.back());
      if (i % 3 == 0) lines += line(name("eve", i), {{"account", "eve"}});   // has no account
      if (i % 4 == 1) lines += line(name("much", i), {{"amount", 40'000}});  // for its column
    }
    send(lines);
    const Answer answer =
        run(changed(plan_with("CALL note(:id, @told)"), "[[emit]]",
                    "[[do]]\nsql = \"INSERT INTO told (id) VALUES (@told)\"\n[[do]]\nsql = "
                    "\"UPDATE account SET balance = balance WHERE name = :account\"\nrows = "
                    "1\n[[emit]]"),
            {"-o", "json"});
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_EQ(answer.json()["applied"], 8) << queries;
    EXPECT_EQ(answer.json()["parked"], 5) << queries;
    expect_books(ids);
    EXPECT_EQ(sql("SELECT id FROM called ORDER BY n"), ids);
    Lines told;
    for (const std::string& id : ids) told.push_back("told " + id);
    EXPECT_EQ(sql("SELECT id FROM told ORDER BY n"), told);
  }
  EXPECT_EQ(sql("SELECT count(*) FROM once_parked WHERE id LIKE 'ann%'"), Lines{"0"});
}

// Behind rows that were answered already.
TEST_P(Procedures, one_that_fails_between_its_queries_parks_its_own_message) {
  define_note(2,
              " IF what LIKE 'bad%' THEN SIGNAL SQLSTATE '45000'; END IF; SELECT CAST('x' AS "
              "INT); SELECT 1;");
  send(line("first") + line("bad") + line("last"));
  const Answer answer = run(plan_with("CALL note(:id, @told)"), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["parked"], 1);
  expect_books({"first", "last"});
  EXPECT_EQ(sql("SELECT id FROM called ORDER BY n"), (Lines{"first", "last"}));
  EXPECT_EQ(sql("SELECT id FROM once_parked"), Lines{"bad"});
}

INSTANTIATE_TEST_SUITE_P(Mariadb, Procedures, ::testing::Values(mariadb()));

// As text it would be computed in floating point.
TEST_P(Borders, decimals_stay_exact) {
  define("CREATE TABLE purse (id INT PRIMARY KEY, amount DECIMAL(30, 2) NOT NULL)");
  sql("INSERT INTO purse VALUES (1, 12345678901234567890.10)");
  send(line("first", {{"money", "0.03"}}) + line("second", {{"money", "2e-2"}}));
  const std::string text =
      changed(plan_with("UPDATE purse SET amount = amount + :money WHERE id = 1"), "[[do]]",
              "money = { json = \"/money\", type = \"decimal\" }\n[[do]]");
  const Answer answer = run(text);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(sql("SELECT amount FROM purse"), Lines{"12345678901234567890.15"});
  expect_books({"first", "second"});
}

INSTANTIATE_TEST_SUITE_P(Mariadb, Borders, ::testing::Values(mariadb()));
INSTANTIATE_TEST_SUITE_P(Mariadb, LargeMessage, ::testing::Values(mariadb()));

}  // namespace
}  // namespace once::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return once::testing::run_all_on(once::testing::MysqlHome::server());
}
