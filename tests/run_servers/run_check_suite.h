// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run_servers/run_server_suite.h"

namespace once::testing {

// `--check` on a database that no pipeline has used: it finds what can never run, and makes
// nothing.
class RunCheck : public RunServer {
 protected:
  // As RunServer, but nothing opens the store.
  void SetUp() override {
    url_ = GetParam().place_url();
    ::setenv("RUN_DIR", scratch_.directory().c_str(), 1);
    ::setenv("RUN_URL", url_.c_str(), 1);
    ::unsetenv("ONCE_POINT");
    for (const char* topic : {"deposits", "done"})
      ASSERT_EQ(run_once({"topic", "create", "file:" + scratch_.path(topic)}).exit_code, 0);
    for (const std::string& table : GetParam().tables) define(table);
  }

  static std::string with_step(const std::string& step) {
    return changed(plan(), "[[emit]]", "[[do]]\n" + step + "\n[[emit]]");
  }
  // By the check on a new store, and by the run, each in these words.
  void expect_refused(const std::string& text, const std::string& reason) {
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(text, check);
      EXPECT_EQ(answer.exit_code, 3) << text << answer.err;
      EXPECT_NE(answer.err.find(reason), std::string::npos) << answer.err;
      EXPECT_NE(answer.err.find("of [[do]]: "), std::string::npos) << answer.err;
    }
  }
};

TEST_P(RunCheck, new_database_has_the_same_tables_before_and_after) {
  const Lines before = GetParam().tables_in(url_);
  ASSERT_EQ(before.size(), 3u);
  const Answer answer = run(plan(), {"--check"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("effectively once"), std::string::npos) << answer.out;
  EXPECT_NE(answer.err.find("has no tables or keys of Once yet: a run makes them"),
            std::string::npos)
      << answer.err;
  const Json told = run(plan(), {"--check", "-o", "json"}).json();
  EXPECT_EQ(told["store_state"], "none");
  EXPECT_EQ(told["unchecked"], Json::array());
  EXPECT_EQ(run(changed(plan(), "INTO flow", "INTO flou"), {"--check"}).exit_code, 3);
  EXPECT_EQ(GetParam().tables_in(url_), before);
}

TEST_P(RunCheck, table_in_the_place_of_one_of_ours_is_found_by_the_check_as_by_the_run) {
  define("CREATE TABLE once_outbox (mine VARCHAR(9))");
  const Lines before = GetParam().tables_in(url_);
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    const Answer answer = run(plan(), check);
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find("\"once_outbox\" is there, but not the table once_schema"),
              std::string::npos)
        << answer.err;
  }
  EXPECT_EQ(GetParam().tables_in(url_), before);
}

TEST_P(RunCheck, scope_that_was_never_run_leaves_no_name) {
  EXPECT_EQ(run(plan()).exit_code, 0);
  const Lines names = sql("SELECT count(*) FROM once_name");
  const Answer answer =
      run(changed(plan(), "scope = \"deposits\"", "scope = \"other\""), {"--check", "-o", "json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["store_state"], "current");
  EXPECT_EQ(sql("SELECT count(*) FROM once_name"), names);
}

TEST_P(RunCheck, statement_that_the_server_cannot_prepare_names_its_step) {
  expect_refused(with_step("sql = \"DELETE FROM nowhere\""), "step 3 of [[do]]: ");
  expect_refused(with_step("sql = \"INSERT INTO typed (id) VALUES (:id, 1)\""), "typed (id)");
  expect_refused(with_step("sql = \"INSERT INTO typed (idd) VALUES (:id)\""), "idd");
  expect_refused(with_step("sql = \"SELECT 1 FRM typed\""), "FRM typed");
  expect_refused(with_step("unique = { table = \"typed\", key = { idd = \"id\" } }"), "idd");
  expect_refused(changed(with_step("sql = \"SELECT 1, 2\"\ninto = { one = \"integer\" }"),
                         "amount = \"amount\"", "amount = \"one\""),
                 "answers 2 columns, and into names 1");
}

TEST_P(RunCheck, temporary_table_of_an_earlier_step_is_not_missed) {
  send(line("first"));
  const std::string text = with_step(
      "sql = \"CREATE TEMPORARY TABLE IF NOT EXISTS later (id VARCHAR(200))\"\n"
      "[[do]]\nsql = \"INSERT INTO later VALUES (:id)\"");
  const Answer answer = run(text, {"--check"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("step 4 of [[do]] was not checked"), std::string::npos) << answer.err;
  sql("INSERT INTO account VALUES ('ann', 0)");
  EXPECT_EQ(run(text).exit_code, 0);
  expect_books({"first"});
}

}  // namespace once::testing
