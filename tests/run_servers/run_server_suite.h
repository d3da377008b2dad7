// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/open.h>
#include <once/sql.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/program.h"
#include "testing/scratch.h"

namespace once::testing {

using Lines = std::vector<std::string>;

// What differs from one server to the other.
struct RunKind {
  std::string (*place_url)();  // of a place of its own
  void (*administer)(const std::string& statement, const std::string& url);
  Lines tables;                 // flow, with an `n` that counts, account, and typed
  std::string printed_at = {};  // how a moment and an amount of `typed` are printed
  std::string printed_price = {};
  std::string read_balance = {};  // steps that add one to ann's balance and read it `into` balance
  // Make the table `flow` refuse ids that begin with "refuse", with the words "not this one".
  Lines refusing = {};
  // Make it refuse ids "raise CODE" with this code, and the words "it says so"; codes that would
  // concern every message, and of these such as pass by themselves.
  Lines raising = {};
  Lines codes = {};
  Lines passing_codes = {};
  // The tables of a place, read past the store, which would make its own.
  Lines (*tables_in)(const std::string& url) = nullptr;
};

// A bank on a real server, fed by `once run` from a topic of the embedded log.
class RunServer : public ::testing::TestWithParam<RunKind> {
 protected:
  void SetUp() override {
    url_ = GetParam().place_url();
    ::setenv("RUN_DIR", scratch_.directory().c_str(), 1);
    ::setenv("RUN_URL", url_.c_str(), 1);
    ::unsetenv("ONCE_POINT");
    for (const char* topic : {"deposits", "done"})
      ASSERT_EQ(run_once({"topic", "create", "file:" + scratch_.path(topic)}).exit_code, 0);
    for (const std::string& table : GetParam().tables) define(table);
    sql("INSERT INTO account VALUES ('ann', 0), ('bob', 0)");
  }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  void define(const std::string& statement) { GetParam().administer(statement, url_); }
  // Runs a statement from outside and answers the first column.
  Lines sql(const std::string& statement) {
    auto store = open_store(url_).value();
    auto transaction = store->begin("outside").value();
    Lines found;
    const auto rows = transaction->sql()->query(statement);
    EXPECT_TRUE(rows) << rows.error().text;
    if (!rows) return found;
    for (const Row& row : *rows) {
      const auto* number = std::get_if<std::int64_t>(&row[0]);
      found.push_back(number != nullptr ? std::to_string(*number) : std::get<std::string>(row[0]));
    }
    EXPECT_TRUE(transaction->commit());
    return found;
  }

  static std::string plan() {
    return R"toml(scope = "deposits"
[source]
url = "file:${RUN_DIR}/deposits"
id = "json:/id"
[store]
url = "${RUN_URL}"
[run]
at_end = "stop"
[values]
account = { json = "/account", null = true }
amount = { json = "/amount" }
day = { json = "/day", default = "2026-01-31" }
kind = { json = "/kind", default = "cash" }
[[do]]
sql = '''
INSERT INTO flow (id, account, amount, day, kind)
VALUES (:id, :account, :amount, :day, :kind)'''
[[do]]
sql = "UPDATE account SET balance = balance + :amount WHERE name = :account"
rows = 1
otherwise = { park = "no such account" }
[[emit]]
to = "file:${RUN_DIR}/done"
body = { deposit = "id", amount = "amount" }
)toml";
  }
  Answer run(const std::string& text, Lines more = {}) {
    std::ofstream(scratch_.path("bank.toml")) << text;
    Lines words{"run", scratch_.path("bank.toml")};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words);
  }
  void send(const std::string& lines) {
    const Answer sent = run_once({"produce", "file:" + scratch_.path("deposits")}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  static std::string line(const std::string& id, const Json& more = Json::object()) {
    Json message = {{"id", id}, {"account", "ann"}, {"amount", 1}};
    message.update(more);
    return message.dump() + "\n";
  }
  static std::string changed(std::string text, const std::string& what, const std::string& with) {
    text.replace(text.find(what), what.size(), with);
    return text;
  }

  // Neither lost nor doubled nor out of order: in the flow, in the balance, at the destination.
  void expect_books(const Lines& ids) {
    EXPECT_EQ(sql("SELECT id FROM flow ORDER BY n"), ids);
    EXPECT_EQ(sql("SELECT balance FROM account WHERE name = 'ann'"),
              Lines{std::to_string(ids.size())});
    Lines announced;
    for (const std::string& text :
         run_once({"consume", "file:" + scratch_.path("done"), "-o", "json"}).lines())
      announced.push_back(Json::parse(text)["id"]);
    EXPECT_EQ(announced, ids);
  }

  Scratch scratch_;
  std::string url_;
};

TEST_P(RunServer, every_id_counts_once_also_if_it_is_killed) {
  Lines ids;
  for (const char* point :
       {"lane_after_handler", "lane_before_commit", "lane_after_commit", "relay_after_append"}) {
    std::string lines;
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < 40; ++i) {
        const std::string id = point + std::to_string(i);
        lines += line(id);
        if (round == 0) ids.push_back(id);
      }
    send(lines);
    ::setenv("ONCE_POINT", point, 1);
    EXPECT_EQ(run(plan()).exit_code, 128 + 9) << point;
    ::unsetenv("ONCE_POINT");
    const Answer answer = run(plan());
    ASSERT_EQ(answer.exit_code, 0) << answer.err;
    expect_books(ids);
  }
}

// One bad message between two good ones: it is parked, and its neighbours have their effect.
TEST_P(RunServer, what_a_column_refuses_is_parked_and_the_others_go_on) {
  const std::vector<std::pair<std::string, Json>> bad{
      {"overflow", {{"amount", 70000}}},
      {"no number", {{"amount", "many"}}},
      {"check", {{"amount", -5}}},
      {"null", {{"account", nullptr}}},
      {"too long", {{"account", "somebody with a long name"}}},
      {"no date", {{"day", "2026-02-30"}}},
      {"no enum", {{"kind", "gold"}}},
      {"zero byte", {{"kind", std::string("ca\0sh", 5)}}},
      {"no account", {{"account", "eve"}}}};
  std::string lines;
  Lines good;
  for (std::size_t i = 0; i < bad.size(); ++i) {
    good.push_back("good " + std::to_string(i));
    lines += line(good.back()) + line(bad[i].first, bad[i].second);
  }
  send(lines);
  const Answer answer = run(plan(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], good.size());
  EXPECT_EQ(answer.json()["parked"], bad.size());
  expect_books(good);
  const Answer parked =
      run_once({"park", "ls", "--store", url_, "--scope", "deposits", "-o", "jsonl"});
  SCOPED_TRACE(parked.out + parked.err);
  EXPECT_EQ(sql("SELECT count(*) FROM once_parked"), Lines{std::to_string(bad.size())});
}

// By statements one by one and by joined ones.
TEST_P(RunServer, what_a_trigger_raises_parks_its_message_and_the_others_go_on_in_order) {
  for (const std::string& statement : GetParam().refusing) define(statement);
  std::string lines;
  Lines good, refused;
  for (int i = 0; i < 90; ++i) {
    const bool is_refused = i % 9 == 4;
    (is_refused ? refused : good).push_back((is_refused ? "refuse " : "good ") + std::to_string(i));
    lines += line(is_refused ? refused.back() : good.back());
  }
  send(lines);
  const Answer answer = run(plan(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], good.size());
  EXPECT_EQ(answer.json()["parked"], refused.size());
  expect_books(good);
  Lines parked;
  const Answer listed =
      run_once({"park", "ls", "--store", url_, "--scope", "deposits", "--all", "-o", "json"});
  for (const Json& row : listed.json()) {
    parked.push_back(row["id"]);
    EXPECT_NE(row["reason"].get<std::string>().find("not this one"), std::string::npos) << row;
  }
  EXPECT_EQ(parked, refused);
}

// What a server would say to every message, a trigger can say to one.
TEST_P(RunServer, codes_that_concern_all_messages_park_the_one_that_gets_them) {
  for (const std::string& statement : GetParam().raising) define(statement);
  Lines codes = GetParam().codes;
  codes.insert(codes.end(), GetParam().passing_codes.begin(), GetParam().passing_codes.end());
  std::string lines;
  Lines good, bad;
  for (const std::string& code : codes) {
    bad.push_back("raise " + code);
    good.push_back("good " + code);
    lines += line(bad.back()) + line(good.back());
  }
  bad.push_back("raise " + codes.front() + " at the end");
  send(lines + line(bad.back()));
  const Answer answer =
      run(changed(plan(), "[values]", "[retry]\nattempts = 2\nbackoff = \"1ms..5ms\"\n[values]"),
          {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["applied"], good.size());
  EXPECT_EQ(answer.json()["parked"], bad.size());
  expect_books(good);
  Lines parked;
  const Answer listed =
      run_once({"park", "ls", "--store", url_, "--scope", "deposits", "--all", "-o", "json"});
  for (const Json& row : listed.json()) {
    parked.push_back(row["id"]);
    // MariaDB's library does not believe a server that uses a number of its own.
    const std::string reason = row["reason"];
    const bool is_believed = reason.find("malformed packet") == std::string::npos;
    EXPECT_TRUE(!is_believed || reason.find("it says so") != std::string::npos) << row;
  }
  EXPECT_EQ(parked, bad);
}

// Nothing tells one message from all, so a person has to.
TEST_P(RunServer, message_that_comes_alone_ends_the_run_until_a_person_parks_it) {
  for (const std::string& statement : GetParam().raising) define(statement);
  const std::string bad = "raise " + GetParam().codes.front();
  send(line(bad));
  for (int start = 0; start < 2; ++start) {
    const Answer refused = run(plan());
    EXPECT_NE(refused.exit_code, 0);
    for (const std::string& part :
         {std::string("it says so"), "id \"" + bad + "\"",
          std::string("`once park add FILE --partition deposits/0 --offset 0 --reason ")})
      EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
  const Lines add{"park",        "add",        scratch_.path("bank.toml"),
                  "--partition", "deposits/0", "--offset",
                  "0",           "--reason",   "ticket 812"};
  const Answer added = run_once(add);
  ASSERT_EQ(added.exit_code, 0) << added.err;
  EXPECT_EQ(run_once(add).exit_code, 2);  // it is parked
  send(line("good 1") + line(bad) + line("good 2"));
  const Answer answer = run(plan(), {"-o", "json"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.json()["duplicates"], 2);
  expect_books({"good 1", "good 2"});
  EXPECT_EQ(run_once(add).exit_code, 2);  // it was handled
  const Answer known = run_once({"trace", bad, "--store", url_, "-o", "json"});
  EXPECT_NE(known.out.find("by hand: ticket 812"), std::string::npos) << known.out << known.err;
  const Json record =
      run_once({"ledger", "show", bad, "--store", url_, "--scope", "deposits", "-o", "json"})
          .json();
  EXPECT_NE(record.dump().find("parked"), std::string::npos) << record;
}

TEST_P(RunServer, what_the_database_does_not_know_is_told_with_its_line) {
  send(line("deposit-1"));
  const std::vector<std::pair<std::string, std::string>> changes{
      {"INSERT INTO flow", "INSERT INTO flou"},
      {"account, amount, day, kind)", "account, amount, dai, kind)"},
      {"SET balance = balance", "SET ballance = balance"},
      {"UPDATE account", "UPDATE accounts"},
      {"VALUES (:id", "VALUS (:id"}};
  for (const auto& [what, with] : changes)
    for (const Lines& check : {Lines{"--check"}, Lines{}}) {
      const Answer answer = run(changed(plan(), what, with), check);
      EXPECT_EQ(answer.exit_code, 3) << with << ": " << answer.err;
      EXPECT_NE(answer.err.find("bank.toml:1"), std::string::npos) << answer.err;
      EXPECT_EQ(answer.err.find("secret"), std::string::npos) << answer.err;
    }
  EXPECT_EQ(run(plan(), {"--check"}).exit_code, 0);
  expect_books({});
}

}  // namespace once::testing
