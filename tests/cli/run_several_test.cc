// SPDX-License-Identifier: Apache-2.0
// once run with a file that describes several pipelines: one process runs them all.
#include <algorithm>
#include <map>
#include <utility>

#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::RunBank;

class RunSeveral : public RunBank {
 protected:
  void SetUp() override {
    RunBank::SetUp();
    ASSERT_EQ(run_once({"topic", "create", topic("refunds"), "--partitions", "2"}).exit_code, 0);
    sql("CREATE TABLE refund (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT, place TEXT)");
  }

  // Both announce in the same topic.
  static std::string both(const std::string& at_end = "stop") {
    return "run = { at_end = \"" + at_end + R"toml(" }
store = { url = "sqlite:${RUN_DIR}/bank.db" }

[[pipeline]]
scope = "deposits"
source = { url = "file:${RUN_DIR}/deposits", id = "json:/id" }
[pipeline.values]
account = { json = "/account" }
amount = { json = "/amount", type = "integer" }
[[pipeline.do]]
sql = "INSERT INTO flow (id, account, amount) VALUES (:id, :account, :amount)"
[[pipeline.do]]
sql = "UPDATE account SET balance = balance + :amount WHERE name = :account"
rows = 1
[[pipeline.emit]]
to = "file:${RUN_DIR}/done"
key = "account"
body = { deposit = "id", amount = "amount" }

[[pipeline]]
name = "paying back"
scope = "refunds"
source = { url = "file:${RUN_DIR}/refunds", id = "json:/id" }
[pipeline.values]
account = { json = "/account" }
[[pipeline.do]]
sql = "INSERT INTO refund (id, account, place) VALUES (:id, :account, :partition)"
[[pipeline.emit]]
to = "file:${RUN_DIR}/done"
id = ["id", { constant = "refund" }]
key = "account"
body = { refund = "id" }
)toml";
  }

  // Refunds first, first + 1, ..., each twice and each of one of ten accounts.
  Lines refund_twice(int first, int count) {
    std::string lines;
    Lines ids;
    for (int round = 0; round < 2; ++round)
      for (int i = first; i < first + count; ++i) {
        const std::string id = "refund-" + std::to_string(100'000 + i);
        const std::string account = "account-" + std::to_string(i % 10);
        const Json body = {{"id", id}, {"account", account}};
        lines += Json{{"key", account}, {"body", body.dump()}}.dump() + "\n";
        if (round == 0) ids.push_back(id);
      }
    const Answer sent = run_once({"produce", topic("refunds"), "--json"}, lines);
    EXPECT_EQ(sent.exit_code, 0) << sent.err;
    return ids;
  }

  // What the second pipeline did: each id once, and those of a partition in their order.
  void expect_refunds(const Lines& ids) {
    EXPECT_EQ(sql("SELECT id FROM refund ORDER BY id"), ids);
    for (const char* place : {"refunds/0", "refunds/1"}) {
      const std::string where = "FROM refund WHERE place = '" + std::string(place) + "'";
      EXPECT_EQ(sql("SELECT id " + where + " ORDER BY n"),
                sql("SELECT id " + where + " ORDER BY id"));
      EXPECT_NE(sql("SELECT count(*) " + where), Lines{"0"});
    }
  }
  // What is in the common topic, by what it is about.
  Lines announced(const std::string& member) {
    Lines found;
    for (const std::string& line : run_once({"consume", topic("done"), "-o", "json"}).lines()) {
      const Json body = Json::parse(std::string(Json::parse(line)["body"]));
      if (body.contains(member)) found.push_back(body[member]);
    }
    return found;
  }
  // Refunds come from two partitions: the order is that of each account.
  void expect_refunds_announced(const Lines& ids) {
    Lines found = announced("refund");
    std::map<char, std::string> last;
    for (const std::string& id : found) EXPECT_LT(std::exchange(last[id.back()], id), id);
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, ids);
  }
};

TEST_F(RunSeveral, all_pipelines_of_a_file_run_in_one_process_and_are_told_apart) {
  const Lines deposits = send_twice(0, 30);
  const Lines refunds = refund_twice(0, 40);
  const Answer answer = run(both(), {"-o", "json", "--log", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const Json pipelines = answer.json()["pipelines"];
  ASSERT_EQ(pipelines.size(), 2u) << answer.out;
  EXPECT_EQ(pipelines[0]["pipeline"], "deposits");
  EXPECT_EQ(pipelines[0]["applied"], 30);
  EXPECT_EQ(pipelines[1]["pipeline"], "paying back");
  EXPECT_EQ(pipelines[1]["applied"], 40);
  EXPECT_EQ(pipelines[1]["duplicates"], 40);
  EXPECT_NE(answer.err.find("\"text\":\"owns refunds/0, refunds/1\""), std::string::npos)
      << answer.err;
  EXPECT_NE(answer.err.find("\"pipeline\":\"paying back\""), std::string::npos) << answer.err;
  expect_books(deposits);
  expect_refunds(refunds);
  EXPECT_EQ(announced("deposit"), deposits);
  expect_refunds_announced(refunds);
}

TEST_F(RunSeveral, one_of_them_can_be_run_alone) {
  const Lines deposits = send_twice(0, 3);
  refund_twice(0, 3);
  const Answer answer = run(both(), {"--pipeline", "deposits"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("info: deposits: owns deposits/0"), std::string::npos) << answer.err;
  expect_books(deposits);
  EXPECT_EQ(sql("SELECT count(*) FROM refund"), Lines{"0"});
  const Answer unknown = run(both(), {"--pipeline", "paying"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("no pipeline \"paying\"; it has deposits, paying back"),
            std::string::npos)
      << unknown.err;
  EXPECT_EQ(run(head() + deposit(), {"--pipeline", "deposits"}).exit_code, 2);
}

TEST_F(RunSeveral, a_check_and_a_try_are_about_all_of_them) {
  refund_twice(0, 1);
  const Json checked = run(both(), {"--check", "-o", "json"}).json()["pipelines"];
  ASSERT_EQ(checked.size(), 2u);
  EXPECT_EQ(checked[1]["scope"], "refunds");
  EXPECT_EQ(checked[1]["pipeline"], "paying back");
  const Json tried = run(both(), {"--try", "5", "-o", "json"}).json()["pipelines"];
  ASSERT_EQ(tried.size(), 2u);
  EXPECT_EQ(tried[0]["messages"].size(), 0u);
  EXPECT_EQ(tried[1]["messages"].size(), 2u);
}

TEST_F(RunSeveral, nothing_runs_while_one_of_them_cannot) {
  send_twice(0, 3);
  sql("DROP TABLE refund");
  const Answer answer = run(both());
  EXPECT_EQ(answer.exit_code, 3) << answer.err;
  EXPECT_NE(answer.err.find("pipeline \"paying back\": "), std::string::npos) << answer.err;
  EXPECT_EQ(sql("SELECT count(*) FROM flow"), Lines{"0"});
}

TEST_F(RunSeveral, one_that_fails_ends_all_with_its_code_and_its_name) {
  const Lines deposits = send_twice(0, 3);
  Program running({"run", write(both("wait"))});
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"3"}; });
  // Everything is parked: "too many" is code 6.
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "{\"id\":\"refund-" + std::to_string(i) + "\"}\n";
  ASSERT_EQ(run_once({"produce", topic("refunds")}, lines).exit_code, 0);
  const Answer answer = running.wait();
  EXPECT_EQ(answer.exit_code, 6) << answer.err;
  EXPECT_NE(answer.err.find("pipeline \"paying back\": "), std::string::npos) << answer.err;
  EXPECT_NE(answer.out.find("deposits"), std::string::npos) << "the table is still written";
  expect_books(deposits);
}

TEST_F(RunSeveral, sigterm_ends_all_of_them_well) {
  const Lines deposits = send_twice(0, 20);
  const Lines refunds = refund_twice(0, 20);
  Program running({"run", write(both("wait"))});
  wait_for([&] { return sql("SELECT count(*) FROM refund") == Lines{"20"}; });
  wait_for([&] { return announced("deposit").size() + announced("refund").size() == 40; });
  ::kill(running.pid(), SIGTERM);
  const Answer answer = running.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  expect_books(deposits);
  expect_refunds(refunds);
}

TEST_F(RunSeveral, killed_at_any_time_nothing_is_lost_doubled_or_out_of_order) {
  Lines deposits;
  Lines refunds;
  int kills = 0;
  for (const char* point :
       {"lane_after_begin", "lane_after_handler", "lane_before_commit", "lane_after_commit",
        "relay_after_assign", "relay_after_append", "relay_after_sent"}) {
    for (const std::string& id : send_twice(static_cast<int>(deposits.size()), 10))
      deposits.push_back(id);
    for (const std::string& id : refund_twice(static_cast<int>(refunds.size()), 20))
      refunds.push_back(id);
    ::setenv("ONCE_POINT", point, 1);
    kills += run(both()).exit_code == 128 + SIGKILL ? 1 : 0;
    ::unsetenv("ONCE_POINT");
    for (const int after_ms : {5, 15, 30}) {
      Program running({"run", write(both("wait"))});
      std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
      ::kill(running.pid(), SIGKILL);
      running.wait();
    }
    const Answer again = run(both());
    ASSERT_EQ(again.exit_code, 0) << point << ": " << again.err;
    expect_books(deposits);
    expect_refunds(refunds);
    EXPECT_EQ(announced("deposit"), deposits) << point;
    expect_refunds_announced(refunds);
  }
  EXPECT_EQ(kills, 7);
}

TEST_F(RunSeveral, topics_of_one_source_are_read_in_their_own_orders_under_kills) {
  ASSERT_EQ(run_once({"topic", "create", topic("late")}).exit_code, 0);
  const std::string file = R"toml(
scope = "all"
source = { url = "file:${RUN_DIR}/refunds,late", id = "json:/id" }
store = { url = "sqlite:${RUN_DIR}/bank.db" }
run = { at_end = "stop", batch = 7 }
[values]
account = { json = "/account" }
[[do]]
sql = "INSERT INTO refund (id, account, place) VALUES (:id, :account, :partition)"
)toml";
  Lines ids = refund_twice(0, 100);
  std::string late;
  for (int i = 100; i < 150; ++i) {
    ids.push_back("refund-" + std::to_string(100'000 + i));
    late += Json{{"id", ids.back()}, {"account", "late"}}.dump() + "\n";
  }
  // What the other topic has already is the same message: ids are those of the scope.
  late += Json{{"id", ids.front()}, {"account", "account-0"}}.dump() + "\n";
  ASSERT_EQ(run_once({"produce", topic("late")}, late).exit_code, 0);
  for (const char* point : {"lane_before_commit", "lane_after_commit", "lane_after_ack"}) {
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run(file).exit_code, 128 + SIGKILL);
    ::unsetenv("ONCE_POINT");
  }
  const Answer answer = run(file);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_NE(answer.err.find("owns refunds/0, refunds/1, late/0"), std::string::npos) << answer.err;
  expect_refunds(ids);
  EXPECT_EQ(sql("SELECT id FROM refund WHERE place = 'late/0' ORDER BY n"),
            Lines(ids.begin() + 100, ids.end()));
  const Json positions = run_once({"position", "ls", "--store", store(), "--source",
                                   topic("refunds,late"), "-o", "json"})
                             .json();
  ASSERT_EQ(positions.size(), 3u);
  for (const Json& position : positions) EXPECT_EQ(position["lag"], 0) << position;
  const Answer checked = run(file, {"--check", "-o", "json"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.json()["partitions"], (Json{"refunds/0", "refunds/1", "late/0"}));
}

TEST_F(RunSeveral, a_source_names_each_topic_once_and_commands_about_one_topic_say_so) {
  const Answer twice = run_once({"trace", "x", "--store", store(), "--source", topic("done,done")});
  EXPECT_NE(twice.exit_code, 0);
  for (const char* command : {"consume", "audit"}) {
    const Answer several = run_once({command, topic("done,refunds")});
    EXPECT_EQ(several.exit_code, 2) << command;
    EXPECT_NE(several.err.find("names several topics; name one"), std::string::npos) << several.err;
  }
}

}  // namespace
}  // namespace once
