// SPDX-License-Identifier: Apache-2.0
// once run: what it says while it works, when it stops by itself, and what it would do.
#include <sys/resource.h>

#include <sstream>

#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::RunBank;

class RunLog : public RunBank {
 protected:
  // Every line of stderr, each of which must be a JSON object.
  static std::vector<Json> logged(const Answer& answer) {
    std::vector<Json> objects;
    std::istringstream lines(answer.err);
    for (std::string text; std::getline(lines, text);) {
      objects.push_back(Json::parse(text, nullptr, false));
      EXPECT_TRUE(objects.back().is_object()) << text;
      EXPECT_TRUE(objects.back().contains("time") && objects.back().contains("level") &&
                  objects.back().contains("kind") && objects.back().contains("text"))
          << text;
    }
    return objects;
  }
  static std::vector<Json> of_kind(const std::vector<Json>& objects, const std::string& kind) {
    std::vector<Json> found;
    for (const Json& object : objects)
      if (object["kind"] == kind) found.push_back(object);
    return found;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  void send_many(int first, int count, const std::string& account) {
    std::string lines;
    for (int i = first; i < first + count; ++i)
      lines += line("deposit-" + std::to_string(i), account, 1);
    send(lines);
  }
  // All that is in the bank, ours and the user's, row by row.
  Lines everything() {
    Lines all;
    for (const std::string& table :
         sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")) {
      all.push_back(table);
      std::string columns;
      for (const std::string& column : sql("SELECT name FROM pragma_table_info('" + table + "')"))
        columns += (columns.empty() ? "quote(\"" : " || '|' || quote(\"") + column + "\")";
      for (const std::string& row : sql("SELECT " + columns + " FROM \"" + table + "\" ORDER BY 1"))
        all.push_back(row);
    }
    return all;
  }
};

TEST_F(RunLog, a_store_that_cannot_be_used_is_told_and_so_is_its_return) {
  const std::string file = write(head("at_end = \"wait\"") + deposit());
  Program program({"run", file});
  send_many(0, 10, "ann");
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"10"}; });
  // Each transaction opens the lock of the store.
  rlimit before{};
  const rlimit few{3, 1024};
  ASSERT_EQ(::prlimit(program.pid(), RLIMIT_NOFILE, &few, &before), 0);
  send_many(10, 10, "ann");
  std::this_thread::sleep_for(std::chrono::milliseconds(3'500));
  EXPECT_EQ(sql("SELECT count(*) FROM flow"), Lines{"10"});
  const rlimit enough{1024, 1024};
  ASSERT_EQ(::prlimit(program.pid(), RLIMIT_NOFILE, &enough, nullptr), 0);
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"20"}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ::kill(program.pid(), SIGTERM);
  const Answer answer = program.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_TRUE(has(answer.err, " warning: waiting for the s")) << answer.err;
  EXPECT_TRUE(has(answer.err, "Too many open files")) << answer.err;
  EXPECT_TRUE(has(answer.err, " is back after ")) << answer.err;
  EXPECT_EQ(sql("SELECT balance FROM account WHERE name = 'ann'"), Lines{"20"});
}

TEST_F(RunLog, every_line_is_an_object_with_log_json) {
  send_many(0, 20, "ann");
  send_many(20, 5, "eve");
  const Answer answer = run(head() + deposit(), {"--log", "json", "-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto objects = logged(answer);
  EXPECT_EQ(of_kind(objects, "promise").size(), 1u);
  ASSERT_EQ(of_kind(objects, "partitions_assigned").size(), 1u);
  EXPECT_EQ(of_kind(objects, "partitions_assigned")[0]["subject"], "deposits/0");
  const auto parked = of_kind(objects, "message_parked");
  ASSERT_EQ(parked.size(), 2u) << answer.err;  // the first, and the others together
  EXPECT_EQ(parked[0]["count"], 1);
  EXPECT_EQ(parked[0]["level"], "warning");
  EXPECT_EQ(parked[1]["count"], 4);
  EXPECT_EQ(answer.json()["parked"], 5);
  EXPECT_EQ(answer.json()["lag"], 0);
  EXPECT_EQ(answer.json()["lag_partitions"], 1);
  EXPECT_EQ(answer.json()["partitions"], 1);
}

TEST_F(RunLog, an_error_at_the_end_is_an_object_too) {
  const Answer answer = run_once({"run", scratch_.path("nowhere.toml"), "--log", "json"});
  EXPECT_EQ(answer.exit_code, 3);
  const auto objects = logged(answer);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0]["kind"], "error");
  EXPECT_EQ(objects[0]["exit_code"], 3);
}

TEST_F(RunLog, only_what_is_bad_enough_is_logged) {
  send_many(0, 20, "ann");
  send_many(20, 1, "eve");
  const Answer warnings = run(head() + deposit(), {"--log-level", "warning"});
  EXPECT_TRUE(has(warnings.err, "parked deposits/0 offset 20")) << warnings.err;
  EXPECT_FALSE(has(warnings.err, " info: ")) << warnings.err;
  send_many(21, 1, "eve");
  send_many(22, 1, "ann");
  EXPECT_EQ(run(head() + deposit(), {"--quiet"}).err, "");
}

TEST_F(RunLog, neither_secrets_nor_control_characters_are_written) {
  ::setenv("BANK_TOKEN", "hunter2", 1);
  std::string text = head() + deposit();
  const std::string reason = "no such account";
  text.replace(text.find(reason), reason.size(), "\\u001b[2J${BANK_TOKEN} is wrong");
  for (const char* format : {"text", "json"}) {
    send_many(format[0], 1, "eve");
    const Answer answer = run(text, {"--log", format});
    EXPECT_TRUE(has(answer.err, "${BANK_TOKEN} is wrong")) << answer.err;
    EXPECT_FALSE(has(answer.err, "hunter2")) << answer.err;
    EXPECT_FALSE(has(answer.err, "\033")) << answer.err;
  }
  ::unsetenv("BANK_TOKEN");
}

TEST_F(RunLog, statistics_are_logged_with_all_numbers) {
  const std::string file = write(head("at_end = \"wait\"") + deposit());
  Program program({"run", file, "--stats-every", "1", "--log", "json"});
  send_many(0, 10, "ann");
  wait_for([&] { return sql("SELECT count(*) FROM flow") == Lines{"10"}; });
  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
  ::kill(program.pid(), SIGTERM);
  const auto told = of_kind(logged(program.wait()), "statistics");
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back()["applied"], 10);
  EXPECT_EQ(told.back()["lag"], 0);
  EXPECT_TRUE(told.back().contains("emitted"));
}

TEST_F(RunLog, a_run_that_parks_everything_ends_with_code_6_and_goes_on_when_it_is_repaired) {
  send_many(0, 300, "eve");
  const Answer stopped = run(head("at_end = \"wait\"") + deposit(), {"-o", "json"});
  EXPECT_EQ(stopped.exit_code, 6) << stopped.err;
  EXPECT_TRUE(has(stopped.err, "error[parked]")) << stopped.err;
  EXPECT_TRUE(has(stopped.err, "no such account")) << stopped.err;
  EXPECT_TRUE(has(stopped.err, "`once park ls --scope deposits --store " + store() + "`"))
      << stopped.err;
  EXPECT_EQ(stopped.error()["tag"], "parked");
  const std::size_t parked = parked_reasons().size();
  EXPECT_GE(parked, 100u);
  EXPECT_LT(parked, 300u);
  sql("INSERT INTO account VALUES ('eve', 0)");
  ASSERT_EQ(run(head() + deposit()).exit_code, 0);
  Lines rest;
  for (std::size_t i = parked; i < 300; ++i) rest.push_back("deposit-" + std::to_string(i));
  EXPECT_EQ(sql("SELECT id FROM flow ORDER BY n"), rest);
  EXPECT_EQ(parked_reasons().size(), parked);
}

TEST_F(RunLog, a_run_to_the_end_that_parks_all_of_few_messages_ends_with_code_6) {
  send_many(0, 60, "eve");
  const Answer answer = run(head() + deposit());
  EXPECT_EQ(answer.exit_code, 6) << answer.err;
  EXPECT_TRUE(has(answer.err, "60 of the last 60 messages were parked")) << answer.err;
  EXPECT_TRUE(has(answer.err, "no such account")) << answer.err;
  EXPECT_EQ(parked_reasons().size(), 60u);
  EXPECT_EQ(run(head() + deposit()).exit_code, 0) << "there is nothing more";
  send_many(60, 3, "eve");
  send_many(63, 1, "ann");
  EXPECT_EQ(run(head() + deposit()).exit_code, 0) << "not all of them";
  send_many(64, 2, "eve");
  EXPECT_EQ(run(head("at_end = \"stop\"\nparked_max = \"none\"") + deposit()).exit_code, 0);
}

TEST_F(RunLog, how_much_may_be_parked_is_the_files_to_say) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += line("deposit-" + std::to_string(i), i % 10 == 3 ? "eve" : "ann", 1);
  send(lines);
  EXPECT_EQ(run(head() + deposit()).exit_code, 0) << "one in ten is no reason to stop";
  send_many(200, 150, "eve");
  EXPECT_EQ(run(head("at_end = \"stop\"\nparked_max = \"none\"") + deposit()).exit_code, 0);
  EXPECT_EQ(parked_reasons().size(), 170u);
  send_many(350, 12, "eve");
  const Answer few = run(head("at_end = \"stop\"\nparked_max = \"100% of 10\"") + deposit());
  EXPECT_EQ(few.exit_code, 6) << few.err;
}

TEST_F(RunLog, a_try_shows_what_would_happen_and_leaves_everything_as_it_was) {
  send(line("deposit-0", "ann", 5));
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 0);
  send(line("deposit-1", "ann", 7) + line("deposit-0", "ann", 5) + line("deposit-2", "eve", 1) +
       line("deposit-1", "ann", 8) + "nonsense\n" + line("deposit-3", "bob", 2000));
  const Lines before = everything();
  const Answer table = run(head() + deposit() + announcement(), {"--try", "10"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(has(table.out, "deposit-1")) << table.out;
  EXPECT_TRUE(has(table.out, R"({"amount":7,"deposit":"deposit-1"})")) << table.out;
  const Answer answer = run(head() + deposit() + announcement(), {"--try", "10", "-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const Json messages = answer.json()["messages"];
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0]["offset"], 1);
  EXPECT_EQ(messages[0]["verdict"], "fresh");
  EXPECT_EQ(messages[0]["outcome"], "applied");
  EXPECT_EQ(messages[0]["writes"].size(), 2u);
  EXPECT_EQ(messages[0]["writes"][1]["rows"], 1);
  ASSERT_EQ(messages[0]["emits"].size(), 1u);
  EXPECT_EQ(messages[0]["emits"][0]["message"]["key"], "ann");
  EXPECT_EQ(messages[1]["verdict"], "duplicate");
  EXPECT_EQ(messages[2]["outcome"], "parked");
  EXPECT_EQ(messages[2]["detail"], "no such account");
  EXPECT_EQ(messages[3]["verdict"], "mismatch");
  EXPECT_TRUE(messages[4]["verdict"].is_null());
  EXPECT_EQ(messages[4]["outcome"], "parked");
  EXPECT_EQ(messages[5]["outcome"], "parked") << "the column refuses it";
  EXPECT_EQ(everything(), before);
  expect_announced({"deposit-0"});
  // And then it happens.
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 0);
  expect_books({"deposit-0", "deposit-1"});
  expect_announced({"deposit-0", "deposit-1"});
}

TEST_F(RunLog, a_try_does_not_disturb_the_run_beside_it) {
  const std::string file = write(head("at_end = \"wait\"") + deposit());
  Program program({"run", file});
  Lines ids;
  for (int round = 0; round < 5; ++round) {
    send_many(round * 20, 20, "ann");
    const Answer tried = run_once({"run", file, "--try", "20", "-o", "json"});
    EXPECT_EQ(tried.exit_code, 0) << tried.err;
    for (int i = round * 20; i < round * 20 + 20; ++i)
      ids.push_back("deposit-" + std::to_string(i));
    wait_for([&] { return sql("SELECT id FROM flow ORDER BY n") == ids; });
  }
  ::kill(program.pid(), SIGTERM);
  const Answer answer = program.wait();
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_FALSE(has(answer.err, "fenced")) << answer.err;
  expect_books(ids);
}

}  // namespace
}  // namespace once
