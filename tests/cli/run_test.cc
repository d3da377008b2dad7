// SPDX-License-Identifier: Apache-2.0
// once run: what a file describes happens once for each id.
#include "run_bank.h"

namespace once {
namespace {

using testing::Answer;
using testing::Json;
using testing::Program;
using testing::run_once;
using testing::RunBank;

TEST_F(RunBank, every_id_counts_once_and_is_announced_once) {
  const Lines ids = send_twice(1, 50);
  const Answer answer = run(head() + deposit() + announcement(), {"-o", "json", "--quiet"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  const Json counts = answer.json();
  EXPECT_EQ(counts["applied"], 50);
  EXPECT_EQ(counts["duplicates"], 50);
  EXPECT_EQ(counts["emitted"], 50);
  EXPECT_EQ(counts["parked"], 0);
  expect_books(ids);
  expect_announced(ids);
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 0);  // nothing is left to do
  expect_books(ids);
  expect_announced(ids);
}

TEST_F(RunBank, what_is_announced_has_the_values_and_the_time_of_its_cause) {
  send(line("deposit-1", "ann", 5));
  ASSERT_EQ(run(head() + deposit() + announcement()).exit_code, 0);
  const auto lines = run_once({"consume", topic("done"), "-o", "json"}).lines();
  const auto causes = run_once({"consume", topic("deposits"), "-o", "json"}).lines();
  ASSERT_EQ(lines.size(), 1u);
  const Json message = Json::parse(lines[0]);
  EXPECT_EQ(message["key"], "ann");
  EXPECT_EQ(message["body"], R"({"amount":5,"deposit":"deposit-1"})");
  EXPECT_EQ(message["timestamp_ms"], Json::parse(causes.at(0))["timestamp_ms"]);
}

TEST_F(RunBank, killed_at_any_point_and_started_again_nothing_is_lost_or_doubled) {
  Lines ids;
  int kills = 0;
  for (const char* point : {"lane_after_begin", "lane_after_admit", "lane_after_handler",
                            "lane_before_commit", "lane_after_commit", "lane_after_ack",
                            "relay_after_assign", "relay_after_append", "relay_after_sent"}) {
    const Lines more = send_twice(static_cast<int>(ids.size()), 10);
    ids.insert(ids.end(), more.begin(), more.end());
    ::setenv("ONCE_POINT", point, 1);
    const Answer killed = run(head() + deposit() + announcement());
    ::unsetenv("ONCE_POINT");
    kills += killed.exit_code == 128 + SIGKILL ? 1 : 0;
    const Answer again = run(head() + deposit() + announcement());
    ASSERT_EQ(again.exit_code, 0) << point << ": " << again.err;
    expect_books(ids);
    expect_announced(ids);
  }
  EXPECT_EQ(kills, 9);
}

TEST_F(RunBank, a_bad_message_is_parked_with_its_reason_and_the_others_go_on) {
  send(line("deposit-1", "ann", 1) + "this is no JSON\n" +
       R"({"account":"ann","amount":1})"
       "\n" +
       line("deposit-2", "eve", 1) + line("deposit-3", "bob", 5000) +
       R"({"id":"deposit-4","account":"ann","amount":"1"})"
       "\n" +
       R"({"id":"deposit-5","account":"ann"})"
       "\n" +
       R"({"id":"deposit-6","account":null,"amount":1})"
       "\n" +
       line("deposit-7", "bob", 2));
  const Answer answer = run(head() + deposit(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 2);
  EXPECT_EQ(answer.json()["parked"], 7);
  expect_books({"deposit-1", "deposit-7"});
  const Lines reasons = parked_reasons();
  ASSERT_EQ(reasons.size(), 7u);
  const Lines parts{"finds no id",
                    "finds no id",
                    "no such account",
                    "CHECK constraint failed",
                    "the value \"amount\" (/amount in the body): a string is no integer",
                    "the value \"amount\" (/amount in the body) is not there",
                    "the value \"account\" (/account in the body) is null"};
  for (std::size_t i = 0; i < parts.size(); ++i)
    EXPECT_NE(reasons[i].find(parts[i]), std::string::npos) << reasons[i];
}

// As DECIMAL(38, 18) and clocks of nanoseconds are written.
TEST_F(RunBank, ids_that_are_long_numbers_count_once_each) {
  std::string lines;
  for (const char* id : {"1.000000000000000000", "2.000000000000000000", "1763329595.123456701",
                         "1763329595.123456702", "1e23", "1", "100000000000000000000000.0",
                         "1763329595.1234567020", "2.0"})
    lines += std::string(R"({"amount":1,"account":"ann","id":)") + id + "}\n";
  send(lines);
  // The spelling of the id is part of the body.
  std::string text = head() + deposit();
  text.insert(text.find("[store]"), "content = \"fields:/amount\"\n");
  const Answer answer = run(text, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["duplicates"], 4);
  EXPECT_EQ(answer.json()["parked"], 0);
  expect_books(
      {"1", "2", "1763329595.123456701", "1763329595.123456702", "100000000000000000000000"});
}

TEST_F(RunBank, a_file_from_stdin_runs_like_any_other) {
  send(line("deposit-1", "ann", 1));
  const std::string text = head() + deposit() + announcement();
  EXPECT_EQ(run_once({"run", "-", "--check"}, text).exit_code, 0);
  const Answer answer = run_once({"run", "-"}, text);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  expect_books({"deposit-1"});
  expect_announced({"deposit-1"});
  const Answer wrong = run_once({"run", "-"}, text + "nonsense = 1\n");
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_NE(wrong.err.find("stdin:"), std::string::npos) << wrong.err;
}

TEST_F(RunBank, body_that_is_not_json_is_parked_whatever_stands_in_for_its_values) {
  const Lines bad{R"({"id":"a","account":"ann","amount":1}{"id":"b","account":"ann","amount":2})",
                  R"({"id":"c","account":"ann","amount":1}})",
                  R"({"id":"d","account":"ann","amount":1,"w":tru})",
                  R"({"id":"e","account":"ann","amount":1,"w":"\x"})",
                  "not json",
                  "nullx",
                  "12x"};
  std::string lines;
  for (const std::string& body : bad) lines += body + "\n";
  send(lines + line("deposit-1", "bob", 1));
  std::string text = head("at_end = \"stop\"\nparked_max = \"none\"") + deposit();
  text.replace(text.find("json:/id"), 8, "coordinates");
  text.replace(text.find("{ json = \"/account\" }"), 21,
               "{ json = \"/account\", default = \"ann\" }");
  text.insert(text.find("[store]"), "when = { json = \"/kind\", missing = true }\n");
  const Answer answer = run(text, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 1);
  EXPECT_EQ(answer.json()["passed"], 0);
  EXPECT_EQ(sql("SELECT account FROM flow"), Lines{"bob"});
  const Lines reasons = parked_reasons();
  ASSERT_EQ(reasons.size(), bad.size());
  for (const std::string& reason : reasons)
    EXPECT_NE(reason.find("the body is not JSON"), std::string::npos) << reason;
}

TEST_F(RunBank, a_refusal_takes_back_what_earlier_steps_wrote) {
  sql("CREATE TABLE seen (account TEXT PRIMARY KEY)");
  const std::string text = head() + deposit() + R"toml(
[[do]]
unique = { table = "seen", key = { account = "account" }, present = { reject = "seen before" } }
)toml";
  send(line("deposit-1", "ann", 1) + line("deposit-2", "ann", 1) + line("deposit-3", "bob", 1));
  const Answer answer = run(text, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["rejected"], 1);
  expect_books({"deposit-1", "deposit-3"});
  const Json record =
      run_once({"ledger", "show", "deposit-2", "--store", store(), "-o", "json"}).json();
  EXPECT_NE(record.dump().find("seen before"), std::string::npos) << record.dump();
}

TEST_F(RunBank, a_message_that_fits_no_step_has_no_effect_and_its_id_stays_free) {
  const std::string text = head() + R"toml(
[values]
account = { json = "/account" }
[[do]]
when = { json = "/type", is = ["paid", "booked"] }
sql = "INSERT INTO flow (id, account) VALUES (:id, :account)"
)toml";
  send(R"({"id":"a","type":"made"})"
       "\n"
       R"({"id":"b"})"
       "\n"
       R"({"id":"a","type":"paid","account":"ann"})"
       "\n");
  const Answer answer = run(text, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["no_effect"], 2);
  EXPECT_EQ(answer.json()["applied"], 1);
  EXPECT_EQ(sql("SELECT id FROM flow"), Lines{"a"});
}

TEST_F(RunBank, sigterm_drains_and_ends_well_and_ctrl_c_ends_with_130) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const Lines before = sql("SELECT id FROM flow ORDER BY n");
    Lines ids = before;
    for (const std::string& id : send_twice(static_cast<int>(before.size()), 10)) ids.push_back(id);
    Program program({"run", write(head("at_end = \"wait\"") + deposit() + announcement())});
    wait_for([&] { return sql("SELECT id FROM flow").size() == ids.size(); });
    ::kill(program.pid(), signal);
    const Answer answer = program.wait();
    EXPECT_EQ(answer.exit_code, signal == SIGTERM ? 0 : 130) << answer.err;
    EXPECT_NE(answer.out.find("applied"), std::string::npos) << answer.out;
    expect_books(ids);
    expect_announced(ids);
  }
}

TEST_F(RunBank, version_writes_only_what_was_made_from_the_present_one) {
  sql("CREATE TABLE card (name TEXT PRIMARY KEY, owner TEXT, version INTEGER NOT NULL)");
  sql("INSERT INTO card VALUES ('c', 'nobody', 7)");
  const std::string text = head() + R"toml(
[values]
owner = { json = "/owner" }
card = { json = "/card" }
seen = { json = "/version", type = "integer" }
[[do]]
version = { table = "card", key = { name = "card" }, expected = "seen", set = { owner = "owner" } }
)toml";
  send(R"({"id":"1","card":"c","owner":"ann","version":7})"
       "\n"
       R"({"id":"2","card":"c","owner":"bob","version":7})"
       "\n"
       R"({"id":"3","card":"d","owner":"bob","version":7})"
       "\n");
  const Answer answer = run(text, {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], 1);
  EXPECT_EQ(answer.json()["rejected"], 1);
  EXPECT_EQ(answer.json()["parked"], 1);
  EXPECT_EQ(sql("SELECT owner || version FROM card"), Lines{"ann8"});
}

}  // namespace
}  // namespace once
