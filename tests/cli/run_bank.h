// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "program.h"
#include "testing/scratch.h"

namespace once::testing {

// A bank in an SQLite file, fed by `once run` from a topic of the embedded log. Ann and bob have
// accounts; a deposit makes a row of the flow and changes the balance, and is announced.
class RunBank : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  void SetUp() override {
    ::unsetenv("ONCE_POINT");
    ::setenv("RUN_DIR", scratch_.directory().c_str(), 1);
    ASSERT_EQ(run_once({"topic", "create", topic("deposits")}).exit_code, 0);
    ASSERT_EQ(run_once({"topic", "create", topic("done")}).exit_code, 0);
    sql("CREATE TABLE flow (n INTEGER PRIMARY KEY, id TEXT UNIQUE, account TEXT,"
        " amount INTEGER CHECK (amount < 1000))");
    sql("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)");
    sql("INSERT INTO account VALUES ('ann', 0), ('bob', 0)");
  }
  void TearDown() override { ::unsetenv("ONCE_POINT"); }

  std::string topic(const std::string& name) const { return "file:" + scratch_.path(name); }
  std::string store() const { return "sqlite:" + scratch_.path("bank.db"); }

  // Runs a statement from outside and answers the first column.
  Lines sql(const std::string& statement) {
    sqlite3* bank = nullptr;
    EXPECT_EQ(sqlite3_open(scratch_.path("bank.db").c_str(), &bank), SQLITE_OK);
    sqlite3_busy_timeout(bank, 10'000);
    Lines rows;
    const auto take = [](void* into, int, char** values, char**) {
      static_cast<Lines*>(into)->push_back(values[0] == nullptr ? "null" : values[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(bank, statement.c_str(), take, &rows, nullptr), SQLITE_OK)
        << sqlite3_errmsg(bank);
    sqlite3_close(bank);
    return rows;
  }

  // The file: its head, with the text of the rest.
  static std::string head(const std::string& more = "at_end = \"stop\"") {
    return "scope = \"deposits\"\n"
           "[source]\n"
           "url = \"file:${RUN_DIR}/deposits\"\n"
           "id = \"json:/id\"\n"
           "[store]\n"
           "url = \"sqlite:${RUN_DIR}/bank.db\"\n"
           "[run]\n" +
           more + "\n";
  }
  static std::string deposit() {
    return R"toml(
[values]
account = { json = "/account" }
amount = { json = "/amount", type = "integer" }
[[do]]
sql = "INSERT INTO flow (id, account, amount) VALUES (:id, :account, :amount)"
[[do]]
sql = "UPDATE account SET balance = balance + :amount WHERE name = :account"
rows = 1
otherwise = { park = "no such account" }
)toml";
  }
  static std::string announcement() {
    return R"toml(
[[emit]]
to = "file:${RUN_DIR}/done"
key = "account"
body = { deposit = "id", amount = "amount" }
)toml";
  }

  std::string write(const std::string& text) {
    std::ofstream(scratch_.path("bank.toml")) << text;
    return scratch_.path("bank.toml");
  }
  Answer run(const std::string& text, Lines more = {}) {
    Lines words{"run", write(text)};
    words.insert(words.end(), more.begin(), more.end());
    return run_once(words);
  }

  static std::string line(const std::string& id, const std::string& account, int amount) {
    return Json{{"id", id}, {"account", account}, {"amount", amount}}.dump() + "\n";
  }
  void send(const std::string& lines) {
    const Answer sent = run_once({"produce", topic("deposits")}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  // Deposits first, first + 1, ..., each sent twice, far apart.
  Lines send_twice(int first, int count) {
    std::string lines;
    Lines ids;
    for (int round = 0; round < 2; ++round)
      for (int i = first; i < first + count; ++i) {
        const std::string id = "deposit-" + std::to_string(i);
        lines += line(id, i % 2 == 0 ? "ann" : "bob", 1);
        if (round == 0) ids.push_back(id);
      }
    send(lines);
    return ids;
  }

  // Neither lost nor doubled nor out of order: in the flow, in the balances, and at the
  // destination.
  void expect_books(const Lines& ids) {
    EXPECT_EQ(sql("SELECT id FROM flow ORDER BY n"), ids);
    EXPECT_EQ(sql("SELECT balance FROM account WHERE name = 'ann'"),
              sql("SELECT coalesce(sum(amount), 0) FROM flow WHERE account = 'ann'"));
    EXPECT_EQ(sql("SELECT balance FROM account WHERE name = 'bob'"),
              sql("SELECT coalesce(sum(amount), 0) FROM flow WHERE account = 'bob'"));
  }
  void expect_announced(const Lines& ids) {
    Lines found;
    for (const std::string& text : run_once({"consume", topic("done"), "-o", "json"}).lines())
      found.push_back(Json::parse(text)["id"]);
    EXPECT_EQ(found, ids);
  }
  Lines parked_reasons() { return sql("SELECT reason FROM once_parked ORDER BY number"); }

  static void wait_for(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  Scratch scratch_;
};

}  // namespace once::testing
