// SPDX-License-Identifier: Apache-2.0
// once run --check: what can never run is found by the database itself, and nothing is made.
#include <algorithm>
#include <filesystem>

#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;
using testing::RunBank;

class RunCheck : public RunBank {
 protected:
  static std::string changed(std::string text, const std::string& what, const std::string& with) {
    text.replace(text.find(what), what.size(), with);
    return text;
  }
  static std::string with_step(const std::string& step) {
    return head() + deposit() + "[[do]]\n" + step + "\n";
  }
  // Refused by the check and by the run, in these words.
  void expect_refused(const std::string& text, const std::string& reason) {
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(text, check);
      EXPECT_EQ(answer.exit_code, 3) << answer.err;
      EXPECT_NE(answer.err.find(reason), std::string::npos) << answer.err;
    }
    EXPECT_EQ(sql("SELECT id FROM flow"), Lines{});
  }
  Lines files() const {
    Lines names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.directory()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(RunCheck, store_that_does_not_exist_is_not_made_and_what_was_not_checked_is_told) {
  const std::string text = changed(head() + deposit(), "bank.db", "new.db");
  write(text);
  const Lines before = files();
  const Answer answer = run(text, {"--check"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("warning: the file " + scratch_.path("new.db") +
                            " of the store does not exist: a run makes it"),
            std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("bank.toml:14:7: step 1 of [[do]] was not checked: sqlite:"),
            std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("new.db does not exist yet"), std::string::npos) << answer.err;
  const auto json = run(text, {"--check", "-o", "json"}).json();
  EXPECT_EQ(json["store_state"], "none");
  EXPECT_EQ(json["unchecked"].size(), 2u);
  EXPECT_EQ(files(), before);
  const Answer looked = run_once({"trace", "deposit-1", "--store", "sqlite:" + before[0] + ".no"});
  EXPECT_NE(looked.err.find("there is no file /"), std::string::npos) << looked.err;
  const Answer refused = run(text);
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_NE(
      refused.err.find("; the file " + scratch_.path("new.db") + " did not exist before this run"),
      std::string::npos)
      << refused.err;
}

TEST_F(RunCheck, store_without_a_scheme_names_its_line_and_the_url_that_is_meant) {
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    const Answer answer = run(changed(head() + deposit(), "sqlite:", ""), check);
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find("bank.toml:"), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("did you mean sqlite:"), std::string::npos) << answer.err;
  }
  const Answer flag = run_once({"trace", "1", "--store", "data/points.db"});
  EXPECT_NE(flag.err.find("did you mean sqlite:data/points.db?"), std::string::npos) << flag.err;
}

TEST_F(RunCheck, file_without_tables_of_once_is_checked_and_stays_as_it_is) {
  send(line("deposit-1", "ann", 1));
  const std::string text = head() + deposit();
  write(text);
  const Lines files_before = files();
  const Lines tables = sql("SELECT name FROM sqlite_master ORDER BY name");
  const Answer answer = run(text, {"--check", "-o", "json"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["store_state"], "none");
  EXPECT_EQ(answer.json()["unchecked"], Json::array());
  EXPECT_EQ(run(changed(text, "INTO flow", "INTO flou"), {"--check"}).exit_code, 3);
  EXPECT_EQ(sql("SELECT name FROM sqlite_master ORDER BY name"), tables);
  EXPECT_EQ(sql("PRAGMA journal_mode"), Lines{"delete"});
  EXPECT_EQ(files(), files_before);

  EXPECT_EQ(run(text).exit_code, 0);
  const Lines names = sql("SELECT name FROM once_name ORDER BY name");
  const auto made =
      run(changed(text, "scope = \"deposits\"", "scope = \"other\""), {"--check", "-o", "json"})
          .json();
  EXPECT_EQ(made["store_state"], "current");
  EXPECT_EQ(sql("SELECT name FROM once_name ORDER BY name"), names);
}

TEST_F(RunCheck, statement_that_sqlite_cannot_prepare_names_its_step) {
  expect_refused(with_step("sql = \"CREATE TABLE flow (a)\""),
                 "bank.toml:20:7: step 3 of [[do]]: sqlite:");
  expect_refused(with_step("sql = \"INSERT INTO flow (id) VALUES (:id, 1)\""),
                 "2 values for 1 columns");
  expect_refused(with_step("sql = \"VACUUM\""), "cannot run inside a transaction");
  expect_refused(with_step("sql = \"SELECT count(*), 1 FROM flow\"\ninto = { n = \"integer\" }") +
                     "[[emit]]\nto = \"file:${RUN_DIR}/done\"\nbody = { n = \"n\" }\n",
                 "answers 2 columns, and into names 1");
  expect_refused(with_step("sql = \"DELETE FROM flow\"\ninto = { n = \"integer\" }") +
                     "[[emit]]\nto = \"file:${RUN_DIR}/done\"\nbody = { n = \"n\" }\n",
                 "add RETURNING");
}

// The table is not there before the step that makes it was run.
TEST_F(RunCheck, what_an_earlier_step_creates_is_not_missed) {
  send(line("deposit-1", "ann", 1));
  const std::string text = with_step(
      "sql = \"CREATE TABLE IF NOT EXISTS later (id TEXT)\"\n"
      "[[do]]\nsql = \"INSERT INTO later VALUES (:id)\"");
  const Answer answer = run(text, {"--check"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("step 4 of [[do]] was not checked: a step before it creates something"),
            std::string::npos)
      << answer.err;
  EXPECT_EQ(run(text).exit_code, 0);
  EXPECT_EQ(sql("SELECT id FROM later"), Lines{"deposit-1"});
}

// It has as many messages as before, so that the position is there; but they are others.
TEST_F(RunCheck, topic_that_was_created_again_is_found_by_the_check_as_by_the_run) {
  ASSERT_EQ(run_once({"topic", "create", topic("refunds")}).exit_code, 0);
  for (const std::string& source : {std::string("/deposits"), std::string("/deposits,refunds")}) {
    SCOPED_TRACE(source);
    const std::string text =
        changed(changed(head() + deposit(), "/deposits\"", source + "\""), "scope = \"deposits\"",
                "scope = \"" + source.substr(1) + "\"");
    sql("DELETE FROM flow");
    send(line("deposit-1", "ann", 1));
    ASSERT_EQ(run(text).exit_code, 0);
    EXPECT_EQ(run(text, {"--check"}).exit_code, 0) << "it is the same";
    sql("DELETE FROM flow");
    ASSERT_EQ(run_once({"topic", "delete", topic("deposits")}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", topic("deposits")}).exit_code, 0);
    send(line("deposit-2", "bob", 1));
    expect_refused(text, "it was deleted and created again");
    expect_refused(text, "once position set");
    ASSERT_EQ(run_once({"topic", "delete", topic("deposits")}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", topic("deposits")}).exit_code, 0);
  }
}

// Before anything was read of it, so that no position says where to look.
TEST_F(RunCheck, damaged_source_is_found_by_the_check_as_by_the_run) {
  const auto expect_corrupt = [&](const std::string& reason) {
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(head() + deposit(), check);
      EXPECT_EQ(answer.exit_code, 7) << answer.err;
      EXPECT_NE(answer.err.find(reason), std::string::npos) << answer.err;
    }
    EXPECT_EQ(sql("SELECT id FROM flow"), Lines{});
  };
  send(line("deposit-1", "ann", 1) + line("deposit-2", "bob", 1));
  const std::string partition = scratch_.path("deposits") + "/0";
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(partition))
    if (entry.path().extension() == ".log") segment = entry.path();
  ASSERT_FALSE(segment.empty());
  {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(70);
    file << "damage";
  }
  expect_corrupt("error[corrupt]");
  std::filesystem::remove_all(partition);
  expect_corrupt(partition);
}

TEST_F(RunCheck, table_in_the_place_of_one_of_ours_is_found_by_the_check_as_by_the_run) {
  sql("CREATE TABLE once_outbox (mine TEXT)");
  const std::string text = head() + deposit();
  expect_refused(text, "\"once_outbox\" is there, but not the table once_schema");
  expect_refused(text, "rename it, or choose another database");
  EXPECT_EQ(sql("SELECT count(*) FROM sqlite_master WHERE name LIKE 'once%'"), Lines{"1"});
}

// Its tables ask the file whether others have written to it, by a PRAGMA.
TEST_F(RunCheck, full_text_table_is_written_like_any_other) {
  sql("CREATE VIRTUAL TABLE words USING fts5 (id)");
  send(line("deposit-1", "ann", 1) + line("deposit-2", "ann", 1));
  const std::string text = with_step("sql = \"INSERT INTO words (id) VALUES (:id)\"");
  EXPECT_EQ(run(text, {"--check"}).exit_code, 0);
  const Answer answer = run(text);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(sql("SELECT id FROM words ORDER BY id"), (Lines{"deposit-1", "deposit-2"}));
  EXPECT_EQ(run(with_step("sql = \"PRAGMA data_version = 1\""), {"--check"}).exit_code, 3);
}

TEST_F(RunCheck, store_that_cannot_be_made_is_found_by_the_check_as_by_the_run) {
  expect_refused(changed(head() + deposit(), "${RUN_DIR}/bank.db", "/proc/bank.db"),
                 "/proc/bank.db");
}

TEST_F(RunCheck, messages_that_would_be_left_behind_are_found_by_the_check_as_by_the_run) {
  send(line("deposit-1", "ann", 1));
  ::setenv("ONCE_POINT", "relay_after_assign", 1);
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  sql("DELETE FROM flow");
  expect_refused(head() + deposit(), "messages wait in the outbox for \"file:${RUN_DIR}/done\"");
  EXPECT_EQ(run(head() + deposit() + announcement(), {"--check"}).exit_code, 0);
}

}  // namespace
}  // namespace once
