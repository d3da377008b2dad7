// SPDX-License-Identifier: Apache-2.0
// once run with `later`: messages that cannot be handled yet wait in the store.
#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;

class RunLater : public testing::RunBank {
 protected:
  static std::string file(const std::string& delay, const std::string& more = "",
                          const std::string& attempts = "3") {
    return head("at_end = \"stop\"\n" + more) + R"toml(
[values]
account = { json = "/account" }
amount = { json = "/amount", type = "integer" }
[[do]]
sql = "INSERT INTO flow (id, account, amount) VALUES (:id, :account, :amount)"
[[do]]
sql = "UPDATE account SET balance = balance + :amount WHERE name = :account"
rows = 1
otherwise = { later = ")toml" +
           delay + R"toml(", attempts = )toml" + attempts +
           R"toml(, reason = "no such account yet" }
)toml";
  }
  std::vector<Json> waiting() {
    std::vector<Json> found;
    for (Json& one : run_once({"later", "ls", "--store", store(), "-o", "json"}).json())
      found.push_back(std::move(one));
    return found;
  }
};

TEST_F(RunLater, others_go_on_and_a_person_can_have_it_handled_now) {
  send(line("deposit-1", "carl", 5) + line("deposit-2", "ann", 1) + line("deposit-1", "carl", 5));
  Answer answer = run(file("12h"), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 1);
  EXPECT_EQ(answer.json()["deferred"], 1);
  EXPECT_EQ(answer.json()["duplicates"], 1);
  expect_books({"deposit-2"});
  ASSERT_EQ(waiting().size(), 1u);
  EXPECT_EQ(waiting()[0]["message"]["id"], "deposit-1");
  EXPECT_EQ(waiting()[0]["attempts"], 1);
  EXPECT_EQ(waiting()[0]["reason"], "no such account yet");
  sql("INSERT INTO account VALUES ('carl', 0)");
  ASSERT_EQ(run(file("12h")).exit_code, 0);  // not due yet
  expect_books({"deposit-2"});
  EXPECT_EQ(run_once({"later", "now", "--all", "--store", store()}).exit_code, 2);  // no reason
  answer = run_once({"later", "now", "1", "--store", store(), "--reason", "carl is there"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  ASSERT_EQ(run(file("12h")).exit_code, 0);
  expect_books({"deposit-2", "deposit-1"});
  EXPECT_TRUE(waiting().empty());
}

TEST_F(RunLater, after_its_attempts_it_is_parked) {
  send(line("deposit-1", "carl", 5));
  for (int i = 0; i < 3; ++i) {
    const int code = run(file("1ms")).exit_code;
    ASSERT_TRUE(code == 0 || code == 6) << "6 where the run has done nothing but park it";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(waiting().empty());
  EXPECT_EQ(parked_reasons(), (Lines{"gave up after 3 attempts: no such account yet"}));
  expect_books({});
}

TEST_F(RunLater, what_is_dropped_is_never_handled) {
  send(line("deposit-1", "carl", 5));
  ASSERT_EQ(run(file("12h")).exit_code, 0);
  const Answer dropped =
      run_once({"later", "drop", "--all", "--store", store(), "--reason", "a test", "-o", "json"});
  ASSERT_EQ(dropped.exit_code, 0) << dropped.err;
  EXPECT_EQ(dropped.json()["count"], 1);
  EXPECT_EQ(run_once({"later", "drop", "1", "--store", store(), "--reason", "x"}).exit_code, 8);
  sql("INSERT INTO account VALUES ('carl', 0)");
  send(line("deposit-1", "carl", 5));
  ASSERT_EQ(run(file("12h")).exit_code, 0);
  expect_books({});
  EXPECT_TRUE(waiting().empty());
}

TEST_F(RunLater, what_waits_is_shown_by_every_command_that_looks) {
  send(line("deposit-1", "carl", 5) + line("deposit-2", "carl", 5) + line("deposit-3", "ann", 5));
  Answer answer = run(file("12h"), {"--try", "3", "-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["messages"][0]["outcome"], "later");
  EXPECT_EQ(answer.json()["messages"][2]["outcome"], "applied");
  EXPECT_TRUE(waiting().empty());
  answer = run(file("12h"), {"--check", "-o", "json"});
  EXPECT_EQ(answer.json()["later"], true) << answer.out;
  EXPECT_EQ(run(head() + deposit(), {"--check", "-o", "json"}).json()["later"], false);
  EXPECT_NE(run(file("12h"), {"--check"}).out.find("wait in the store"), std::string::npos);
  ASSERT_EQ(run(file("12h")).exit_code, 0);

  answer = run_once({"status", "--store", store(), "-o", "json"});
  EXPECT_EQ(answer.json()["pipelines"][0]["waiting"], 2) << answer.out;
  EXPECT_EQ(run_once({"scope", "ls", "--store", store(), "-o", "json"}).json()[0]["waiting"], 2);
  answer = run_once({"ledger", "ls", "--outcome", "later", "--store", store(), "-o", "json"});
  EXPECT_EQ(answer.json().size(), 2u) << answer.out;
  answer = run_once({"trace", "deposit-2", "--store", store(), "-o", "json"});
  const Json events = answer.json()["events"];
  ASSERT_EQ(events.size(), 2u) << answer.out;
  EXPECT_EQ(events[0]["kind"], "ledger");
  EXPECT_EQ(events[1]["kind"], "waiting");
  EXPECT_EQ(events[1]["record"]["message"]["id"], "deposit-2");
}

TEST_F(RunLater, what_waits_goes_with_its_scope) {
  send(line("deposit-1", "carl", 5));
  ASSERT_EQ(run(file("12h")).exit_code, 0);
  const Answer dropped = run_once(
      {"scope", "drop", "deposits", "--store", store(), "--reason", "begin anew", "-o", "json"});
  ASSERT_EQ(dropped.exit_code, 0) << dropped.err;
  EXPECT_EQ(dropped.json()["waiting"], 1);
  EXPECT_TRUE(waiting().empty());
  sql("INSERT INTO account VALUES ('carl', 0)");
  ASSERT_EQ(run(file("12h")).exit_code, 0);  // from the beginning of the topic
  expect_books({"deposit-1"});
}

TEST_F(RunLater, killed_at_any_point_nothing_is_lost_or_doubled_and_keys_keep_their_order) {
  const std::string text = file("50ms", "order = \"key\"\n", "1000");
  Lines ids;
  int kills = 0;
  int round = 0;
  for (const char* point :
       {"lane_after_begin", "lane_after_admit", "lane_after_handler", "lane_before_commit",
        "lane_after_commit", "lane_after_defer", "feed_after_poll"}) {
    const std::string account = "new-" + std::to_string(++round);
    std::string lines;
    for (int i = 0; i < 4; ++i) {
      const std::string id = "deposit-" + std::to_string(ids.size());
      lines += Json{{"key", account},
                    {"body", Json{{"id", id}, {"account", account}, {"amount", 1}}.dump()}}
                   .dump() +
               "\n";
      ids.push_back(id);
    }
    const Answer sent = run_once({"produce", topic("deposits"), "--json"}, lines + lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
    for (const bool there : {false, true}) {
      if (there) sql("INSERT INTO account VALUES ('" + account + "', 0)");
      ::setenv("ONCE_POINT", point, 1);
      kills += run(text).exit_code == 128 + SIGKILL ? 1 : 0;
      ::unsetenv("ONCE_POINT");
      if (!there) continue;
      wait_for([&] {
        EXPECT_EQ(run(text).exit_code, 0);
        return waiting().empty();
      });
    }
    EXPECT_EQ(sql("SELECT id FROM flow ORDER BY n"), ids) << point;
    EXPECT_EQ(sql("SELECT sum(balance) FROM account"), sql("SELECT sum(amount) FROM flow"));
    EXPECT_TRUE(parked_reasons().empty()) << point;
  }
  EXPECT_GE(kills, 7);
}

TEST_F(RunLater, without_an_id_it_is_refused) {
  std::string text = file("1m");
  text.replace(text.find("json:/id"), 8, "none");
  const Answer answer = run(text);
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_NE(answer.err.find("later needs an id"), std::string::npos) << answer.err;
}

}  // namespace
}  // namespace once
