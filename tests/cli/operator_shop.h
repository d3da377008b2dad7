// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <once/claims.h>
#include <once/open.h>
#include <once/outbox.h>
#include <once/pipeline.h>
#include <once/records.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program.h"
#include "testing/scratch.h"

namespace once::testing {

// A small shop whose pipeline parks what it cannot pay, and a person who looks after it with the
// binary. Order N belongs to the customer in its key; ann has an account, others may not.
class OperatorShop : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  void SetUp() override {
    ::unsetenv("ONCE_STORE");
    ASSERT_EQ(run_once({"topic", "create", topic_}).exit_code, 0);
    auto store = open();
    auto transaction = store->begin("setup").value();
    SqlTransaction& shop = *transaction->sql();
    ASSERT_TRUE(shop.execute("CREATE TABLE account (name TEXT PRIMARY KEY)"));
    ASSERT_TRUE(
        shop.execute("CREATE TABLE payment (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT)"));
    ASSERT_TRUE(transaction->commit());
    transaction.reset();
    open_account("ann");
  }

  std::unique_ptr<Store> open() { return open_store(store_).value(); }

  void open_account(const std::string& name) {
    auto store = open();
    auto transaction = store->begin("setup").value();
    ASSERT_TRUE(transaction->sql()->execute("INSERT INTO account (name) VALUES (?)", {name}));
    ASSERT_TRUE(transaction->commit());
  }

  static std::string line(int order, const std::string& customer, const std::string& body) {
    return Json{{"id", "order-" + std::to_string(order)}, {"key", customer}, {"body", body}}
               .dump() +
           "\n";
  }
  void send(const std::string& lines) {
    const Answer sent = run_once({"produce", topic_, "--json"}, lines);
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  // Orders 1 to 6: ann's are paid; ben and eve have no account; order 6 has a bad amount.
  void send_the_usual_orders() {
    send(line(1, "ann", "5") + line(2, "ben", "5") + line(3, "ann", "7") + line(4, "eve", "9") +
         line(5, "ann", "1") + line(6, "ann", "-3"));
  }

  static Handler pay() {
    return each([](const Delivery& order, SqlTransaction& shop) -> Result<Outcome> {
      if (order.body.starts_with("-"))
        return parked("amount " + std::string(order.body) + " is negative");
      const std::string stranger = "no account \"" + std::string(order.key) + "\"";
      ONCE_TRY(shop.execute("UPDATE account SET name = name WHERE name = ?", {order.key},
                            rows(1, parked(stranger))));
      ONCE_TRY(shop.execute("INSERT INTO payment (id) VALUES (?)", {order.id}));
      return applied("paid " + std::string(order.body));
    });
  }
  static PipelineOptions options(const std::string& scope = "payments") {
    PipelineOptions options;
    options.scope = scope;
    options.id = IdRule{};
    options.parked_max.reset();  // some runs have nothing but what is parked
    return options;
  }
  // The shop's pipeline from where it was to the end of the topic.
  Statistics work(const std::string& scope = "payments") {
    auto source = open_source(topic_ + "?end=stop").value();
    auto store = open();
    auto pipeline = Pipeline::make(*source, *store, pay(), options(scope)).value();
    const auto done = pipeline->run();
    EXPECT_TRUE(done) << done.error().text;
    return pipeline->statistics();
  }

  // Payments in their order: one row for every effect.
  std::vector<std::string> payments() {
    auto store = open();
    auto transaction = store->begin("look").value();
    const auto found = transaction->sql()->query("SELECT id FROM payment ORDER BY number").value();
    std::vector<std::string> ids;
    for (const Row& row : found) ids.push_back(std::get<std::string>(row.at(0)));
    return ids;
  }
  // What a person did to the books, as "action subject: reason".
  std::vector<std::string> done_by_hand(const std::string& scope = "payments") {
    auto store = open();
    const auto all = store->records()->operations(scope, 0, 1000).value();
    std::vector<std::string> lines;
    for (const OperationRecord& line : all)
      if (line.action != "take" && line.action != "park" && line.action != "forget")
        lines.push_back(line.action + " " + line.subject + ": " + line.reason);
    return lines;
  }

  Answer once(Words words) {
    words.insert(words.end(), {"--store", store_});
    return run_once(words);
  }
  Json once_json(Words words) {
    words.insert(words.end(), {"-o", "json"});
    const Answer answer = once(std::move(words));
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    return answer.json();
  }
  static void expect_error(const Answer& run, int exit_code, const std::string& tag) {
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err.rfind("once: error[" + tag + "]: ", 0), 0u) << run.err;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  Scratch scratch_;
  std::string topic_ = "file:" + scratch_.path("orders");
  std::string path_ = scratch_.path("shop.db");
  std::string store_ = "sqlite:" + path_;
};

}  // namespace once::testing
