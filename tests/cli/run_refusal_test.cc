// SPDX-License-Identifier: Apache-2.0
// once run: what cannot work does not start, and says where in the file.
#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::run_once;
using testing::RunBank;

class RunRefusal : public RunBank {
 protected:
  // The file is refused with this exit code, and nothing has happened.
  void expect_refused(const std::string& text, int exit_code, const std::string& reason,
                      const Lines& more = {"--check"}) {
    const Answer answer = run(text, more);
    EXPECT_EQ(answer.exit_code, exit_code) << answer.err;
    EXPECT_NE(answer.err.find(reason), std::string::npos) << answer.err;
    EXPECT_EQ(sql("SELECT id FROM flow"), Lines{});
  }

  static std::string changed(std::string text, const std::string& what, const std::string& with) {
    text.replace(text.find(what), what.size(), with);
    return text;
  }
};

TEST_F(RunRefusal, check_tells_the_promise_and_touches_nothing) {
  send(line("deposit-1", "ann", 1));
  const Answer answer = run(head() + deposit() + announcement(), {"--check"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.out.find("effectively once per id (json:/id), also if processes die or the "
                            "power fails"),
            std::string::npos)
      << answer.out;
  EXPECT_EQ(sql("SELECT id FROM flow"), Lines{});
  EXPECT_EQ(run(head() + deposit(), {"--check", "-o", "json"}).json()["scope"], "deposits");
}

TEST_F(RunRefusal, an_unknown_key_names_the_nearest_one_and_the_place) {
  expect_refused(changed(head() + deposit(), "account = { json", "account = { jsn"), 3,
                 "bank.toml:11:13: there is no key \"jsn\" in values.account, did you mean "
                 "\"json\"?");
}

TEST_F(RunRefusal, a_missing_table_or_column_names_the_line) {
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    expect_refused(changed(head() + deposit(), "INSERT INTO flow", "INSERT INTO flou"), 3,
                   "bank.toml:14:7: ", check);
    expect_refused(changed(head() + deposit(), "balance = balance", "ballance = balance"), 3,
                   "bank.toml:16:7: ", check);
  }
  const std::string unique =
      head() + "[[do]]\nunique = { table = \"flow\", key = { idd = \"id\" } }\n";
  expect_refused(unique, 3, "idd");
}

TEST_F(RunRefusal, the_schedule_that_breaks_the_promise_is_told) {
  const std::string text =
      changed(head("order = \"key\"\nat_end = \"stop\"") + deposit(), "json:/id", "none");
  const std::string without_id =
      changed(changed(text, "id, account, amount", "account, amount"), ":id, :account", ":account");
  expect_refused(without_id, 3, "This would break it: offset 6 is committed");
}

TEST_F(RunRefusal, a_missing_variable_is_named_and_a_secret_is_not_shown) {
  ::unsetenv("RUN_SECRET");
  const std::string text =
      changed(head() + deposit(), "sqlite:${RUN_DIR}/bank.db", "${RUN_SECRET}");
  expect_refused(text, 3, "the environment has no variable RUN_SECRET");
  const std::string secret = "sqlite:" + scratch_.path("hunter2/bank.db");
  ::setenv("RUN_SECRET", secret.c_str(), 1);
  const Answer answer = run(text);
  ::unsetenv("RUN_SECRET");
  EXPECT_EQ(answer.exit_code, 3) << answer.err;
  EXPECT_EQ(answer.err.find("hunter2"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("${RUN_SECRET}"), std::string::npos) << answer.err;
}

// The command that helps is named, by --check and by the run.
TEST_F(RunRefusal, a_position_that_the_topic_does_not_have_is_told_with_the_command_that_moves_it) {
  send(line("deposit-1", "ann", 1));
  ASSERT_EQ(run(head() + deposit()).exit_code, 0);
  ASSERT_EQ(run_once({"position", "set", "--store", store(), "--scope", "deposits", "--partition",
                      "deposits/0", "--to", "7", "--reason", "a slip"})
                .exit_code,
            0);
  for (const Lines& check : {Lines{"--check"}, Lines{}}) {
    const Answer answer = run(head() + deposit(), check);
    EXPECT_EQ(answer.exit_code, 3) << answer.err;
    EXPECT_NE(answer.err.find("error[gone]"), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("`once position set --partition deposits/0 --to first --reason"),
              std::string::npos)
        << answer.err;
  }
}

// A variable that is no secret is not hidden, or half of an error is.
TEST_F(RunRefusal, only_what_is_secret_is_hidden) {
  const std::string text = changed(head() + deposit(), "/deposits", "/${RUN_TOPIC}");
  ::setenv("RUN_TOPIC", "orders-of-2026", 1);
  const Answer shown = run(text, {"--check"});
  EXPECT_EQ(shown.exit_code, 3) << shown.err;
  EXPECT_NE(shown.err.find("orders-of-2026"), std::string::npos) << shown.err;
  EXPECT_EQ(shown.err.find("${RUN_TOPIC}"), std::string::npos) << shown.err;
  ::setenv("RUN_API_KEY", "orders-of-2026", 1);
  const Answer hidden = run(changed(text, "RUN_TOPIC", "RUN_API_KEY"), {"--check"});
  EXPECT_EQ(hidden.err.find("orders-of-2026"), std::string::npos) << hidden.err;
  EXPECT_NE(hidden.err.find("${RUN_API_KEY}"), std::string::npos) << hidden.err;
  ::unsetenv("RUN_TOPIC");
  ::unsetenv("RUN_API_KEY");
}

TEST_F(RunRefusal, a_file_or_topic_that_is_not_there_is_told) {
  EXPECT_EQ(run_once({"run", scratch_.path("none.toml")}).exit_code, 3);
  expect_refused(changed(head() + deposit(), "/deposits", "/deposit"), 3, "deposit");
  for (const Lines& check : {Lines{"--check"}, Lines{}})
    expect_refused(changed(head() + deposit() + announcement(), "/done", "/gone"), 3, "gone",
                   check);
}

TEST_F(RunRefusal, messages_that_wait_for_a_destination_are_not_left_behind) {
  send(line("deposit-1", "ann", 1));
  ::setenv("ONCE_POINT", "relay_after_assign", 1);
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 128 + SIGKILL);
  ::unsetenv("ONCE_POINT");
  const Answer answer = run(head() + deposit());
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_NE(answer.err.find("messages wait in the outbox for \"file:${RUN_DIR}/done\""),
            std::string::npos)
      << answer.err;
  EXPECT_EQ(run(head() + deposit() + announcement()).exit_code, 0);
  expect_announced({"deposit-1"});
  EXPECT_EQ(run(head() + deposit()).exit_code, 0);
}

}  // namespace
}  // namespace once
