// SPDX-License-Identifier: Apache-2.0
// once run with [park]: every parked message is in the store and, once, in the dead-letter topic.
#include <filesystem>
#include <map>

#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::run_once;

class RunPark : public testing::RunBank {
 protected:
  void SetUp() override {
    RunBank::SetUp();
    ASSERT_EQ(run_once({"topic", "create", topic("dead")}).exit_code, 0);
  }
  static std::string file() {
    return head("at_end = \"stop\"\nparked_max = \"none\"") +
           "[park]\nto = \"file:${RUN_DIR}/dead\"\n" + deposit();
  }
  std::vector<Json> dead() {
    std::vector<Json> messages;
    for (const std::string& text : run_once({"consume", topic("dead"), "-o", "json"}).lines())
      messages.push_back(Json::parse(text));
    return messages;
  }
  static std::string header(const Json& message, const std::string& name) {
    for (const Json& one : message["headers"])
      if (one["name"] == name) return one["value"];
    return "(none)";
  }
};

TEST_F(RunPark, killed_at_any_point_each_parked_message_is_in_the_store_and_in_the_topic_once) {
  Lines expected;
  int kills = 0;
  for (const char* point : {"lane_before_park", "lane_before_commit", "lane_after_commit",
                            "relay_after_assign", "relay_after_append", "relay_after_sent"}) {
    const std::string id = "deposit-" + std::to_string(expected.size());
    send(line(id, "nobody", 1) + "this is no JSON\n" + line(id, "nobody", 1));
    expected.push_back(id);
    expected.emplace_back();  // it has no id
    ::setenv("ONCE_POINT", point, 1);
    kills += run(file()).exit_code == 128 + SIGKILL ? 1 : 0;
    ::unsetenv("ONCE_POINT");
    const Answer again = run(file());
    ASSERT_EQ(again.exit_code, 0) << point << ": " << again.err;
    EXPECT_EQ(sql("SELECT CAST(id AS TEXT) FROM once_parked ORDER BY number"), expected);
    const auto copies = dead();
    ASSERT_EQ(copies.size(), expected.size()) << point;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const bool named = !expected[i].empty();
      if (named) {
        EXPECT_EQ(copies[i]["id"], expected[i]);
      }
      EXPECT_EQ(header(copies[i], "once-parked-tag"), named ? "handler" : "no_id");
    }
  }
  EXPECT_EQ(kills, 6);
}

// SQLite quotes a path that is not one; the value is a secret of the environment.
TEST_F(RunPark, a_secret_that_an_error_quotes_is_in_no_reason_no_row_and_no_copy) {
  ::setenv("RUN_TOKEN", "Zq7kXw9m", 1);
  send(line("deposit-1", "ann", 1));
  const Answer answer = run(head("at_end = \"stop\"\nparked_max = \"none\"") +
                                "[park]\nto = \"file:${RUN_DIR}/dead\"\n" +
                                "[values]\ntoken = { constant = \"${RUN_TOKEN}\" }\n" +
                                "[[do]]\nsql = \"UPDATE account SET balance = "
                                "json_extract('{}', :token)\"\n",
                            {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  ASSERT_EQ(answer.json()["parked"], 1) << answer.out << answer.err;
  EXPECT_EQ(answer.err.find("Zq7kXw9m"), std::string::npos) << answer.err;
  ASSERT_EQ(parked_reasons().size(), 1u);
  EXPECT_NE(parked_reasons()[0].find("${RUN_TOKEN}"), std::string::npos) << parked_reasons()[0];
  EXPECT_EQ(parked_reasons()[0].find("Zq7kXw9m"), std::string::npos);
  EXPECT_EQ(sql("SELECT count(*) FROM once_ledger WHERE instr(result, 'Zq7kXw9m') > 0"),
            Lines{"0"});
  ASSERT_EQ(dead().size(), 1u);
  EXPECT_EQ(dead()[0].dump().find("Zq7kXw9m"), std::string::npos);
  ::unsetenv("RUN_TOKEN");
}

// With its headers the copy is larger than the topic takes. It is set aside in the outbox, the
// message stays parked in the store, and what comes behind it is not held up.
TEST_F(RunPark, by_hand_passes_one_message_and_is_in_the_log_of_operations) {
  send(line("deposit-1", "ann", 1) + line("deposit-2", "ann", 2) + line("deposit-3", "ann", 4));
  const std::vector<std::string> add{"park",     "add", write(file()), "--partition", "deposits/0",
                                     "--offset", "1",   "--reason",    "ticket 812"};
  const Answer added = run_once(add);
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_NE(run_once(add).exit_code, 0);  // it is settled
  ASSERT_EQ(run(file()).exit_code, 0);
  EXPECT_EQ(sql("SELECT CAST(id AS TEXT) FROM once_parked"), Lines{"deposit-2"});
  const auto copies = dead();
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0]["id"], "deposit-2");
  EXPECT_EQ(header(copies[0], "once-parked-reason"), "by hand: ticket 812");
  const std::vector<std::string> logged = run_once({"operations", "--store", store()}).lines();
  ASSERT_FALSE(logged.empty());
  EXPECT_NE(logged.back().find("ticket 812"), std::string::npos) << logged.back();
}

TEST_F(RunPark, a_copy_that_the_topic_never_accepts_holds_up_nobody) {
  constexpr std::size_t nearly_too_large = (16u << 20) - 200;
  send(std::string(nearly_too_large, 'x') + "\n" + line("deposit-1", "nobody", 1) +
       line("deposit-2", "ann", 1));
  const Answer answer = run(file(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["parked"], 2);
  expect_books({"deposit-2"});
  EXPECT_EQ(sql("SELECT at_offset FROM once_parked JOIN once_name ON once_name.number = scope "
                "WHERE name = 'deposits' ORDER BY once_parked.number"),
            (Lines{"0", "1"}));
  ASSERT_EQ(dead().size(), 1u);
  EXPECT_EQ(dead()[0]["id"], "deposit-1");
  const Json outbox = run_once({"outbox", "ls", "--store", store(), "-o", "json"}).json();
  ASSERT_EQ(outbox.size(), 1u);
  EXPECT_EQ(outbox[0]["parked"], 1);
  EXPECT_EQ(outbox[0]["pending"], 0);
}

// Another process writes to the dead-letter topic. Messages are handled and parked meanwhile; their
// copies wait.
TEST_F(RunPark, while_the_topic_is_away_the_pipeline_goes_on) {
  testing::Program other({"produce", topic("dead")});
  other.feed("a line of another producer\n");
  wait_for([&] { return dead().size() == 1; });
  send(line("deposit-1", "nobody", 1) + line("deposit-2", "ann", 1));
  std::string waits = file();
  waits.replace(waits.find("at_end = \"stop\""), 15, "at_end = \"wait\"");
  testing::Program running({"run", write(waits), "--log", "json"});
  wait_for([&] { return sql("SELECT id FROM flow") == Lines{"deposit-2"}; });
  EXPECT_EQ(parked_reasons(), Lines{"no such account"});
  EXPECT_EQ(dead().size(), 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(2'000));  // what is over soon is not told
  other.close_input();
  EXPECT_EQ(other.wait().exit_code, 0);
  wait_for([&] { return dead().size() == 2; });
  EXPECT_EQ(dead()[1]["id"], "deposit-1");
  ::kill(running.pid(), SIGTERM);
  const std::string told = running.wait().err;
  const auto away = told.find("\"kind\":\"destination_away\"");
  const auto back = told.find("\"kind\":\"destination_back\"");
  EXPECT_TRUE(away < back && back != std::string::npos) << told;
}

TEST_F(RunPark, check_names_where_copies_go) {
  EXPECT_NE(run(file(), {"--check"}).out.find("copies of parked messages go to file:"),
            std::string::npos);
  EXPECT_EQ(run(file(), {"--check", "-o", "json"}).json()["park_to"], topic("dead"));
  std::string missing = file();
  missing.replace(missing.find("/dead"), 5, "/none");
  const Answer answer = run(missing, {"--check"});
  EXPECT_NE(answer.exit_code, 0);
  EXPECT_NE(answer.err.find("none"), std::string::npos) << answer.err;
}

TEST_F(RunPark, the_topic_that_is_read_is_refused) {
  const Answer answer =
      run(head() + "[park]\nto = \"file:${RUN_DIR}/./deposits?sync=off\"\n" + deposit());
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_NE(answer.err.find("without end"), std::string::npos) << answer.err;
}

// Of several topics, by a relative path, and for what is emitted: each would feed itself.
TEST_F(RunPark, one_of_the_topics_that_are_read_is_refused_however_it_is_written) {
  std::string reads_two = head() + deposit();
  reads_two.replace(reads_two.find("/deposits\""), 10, "/deposits,dead\"");
  const std::string relative =
      std::filesystem::relative(scratch_.path("dead"), std::filesystem::current_path());
  for (const std::string& to : {std::string("file:${RUN_DIR}/dead"), "file:" + relative}) {
    for (const char* table : {"[park]\n", "[[emit]]\n"}) {
      const Answer answer = run(reads_two + table + "to = \"" + to + "\"\n", {"--check"});
      EXPECT_EQ(answer.exit_code, 3) << table << to;
      const std::string place = table[1] == '[' ? "bank.toml:19:1: " : "bank.toml:20:6: ";
      EXPECT_NE(answer.err.find(place), std::string::npos) << answer.err;
      EXPECT_NE(answer.err.find("which this pipeline reads"), std::string::npos) << answer.err;
    }
  }
}

}  // namespace
}  // namespace once
