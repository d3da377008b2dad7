// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/plan_testing.h"
#include "config/recipe_testing.h"

namespace once {
namespace {

using testing::complaint_about;
using testing::RecipeBank;

std::string plan_with(const std::string& rest) {
  return R"toml(
scope = "s"
source = { url = "file:a/b", id = "json:/id" }
store = { url = "sqlite:s.db" }
[values]
name = { json = "/name" }
amount = { json = "/amount", type = "integer" }
)toml" + rest;
}

const std::string deposit = R"toml(
[[do]]
sql = "UPDATE account SET balance = balance + :amount WHERE name = :name RETURNING balance, owner"
into = { balance = "integer", owner = { type = "text", null = true } }
otherwise = { reject = "no such account" }
)toml";

const std::string announcement = R"toml(
[[emit]]
to = "file:a/c"
body = { name = "name", balance = "balance", owner = "owner" }
)toml";

class Into : public RecipeBank {
 protected:
  void start(const std::string& rest) {
    open(plan_with(rest));
    sql("CREATE TABLE account (name TEXT, balance INTEGER, owner TEXT)");
    sql("CREATE TABLE log (id TEXT, balance INTEGER)");
    sql("INSERT INTO account VALUES ('ann', 10, 'Ann'), ('bob', 0, NULL), ('two', 1, 'x'), "
        "('two', 2, 'y')");
  }
  static std::string line(int id, const std::string& name, int amount) {
    return R"({"id":")" + std::to_string(id) + R"(","name":")" + name + R"(","amount":)" +
           std::to_string(amount) + "}";
  }
};

// Each message sees what the one before it has left, although all rows come back together.
TEST_F(Into, emits_have_what_their_own_statement_returned) {
  start(deposit + announcement);
  EXPECT_EQ(run({line(1, "ann", 5), line(2, "bob", 1), line(3, "ann", 7)}),
            (Lines{"applied", "applied", "applied"}));
  EXPECT_EQ(emitted_bodies(), (Lines{R"({"balance":15,"name":"ann","owner":"Ann"})",
                                     R"({"balance":1,"name":"bob","owner":null})",
                                     R"({"balance":22,"name":"ann","owner":"Ann"})"}));
}

TEST_F(Into, no_row_and_several_rows_are_what_otherwise_says_and_take_all_back) {
  start(deposit + announcement);
  EXPECT_EQ(
      run({line(1, "ann", 5), line(2, "eve", 1), line(3, "two", 1), line(4, "ann", 1)}),
      (Lines{"applied", "rejected: no such account", "rejected: no such account", "applied"}));
  EXPECT_EQ(sql("SELECT balance FROM account ORDER BY name, balance"),
            (Lines{"16", "0", "1", "2"}));
  EXPECT_EQ(emitted_bodies().size(), 2u);
}

TEST_F(Into, later_step_uses_what_an_earlier_one_read) {
  start(R"toml(
[[do]]
sql = "SELECT balance FROM account WHERE name = :name"
into = { before = "integer" }
[[do]]
when = { value = "before", at_least = 5 }
sql = "UPDATE account SET balance = balance - :amount WHERE name = :name RETURNING balance"
into = { after = "decimal" }
[[do]]
when = { value = "after", exists = true }
sql = "INSERT INTO log VALUES (:id, :after)"
)toml");
  EXPECT_EQ(run({line(1, "ann", 4), line(2, "ann", 2), line(3, "ann", 1), line(4, "bob", 1)}),
            (Lines{"applied", "applied", "applied", "applied"}));
  EXPECT_EQ(sql("SELECT id || ':' || balance FROM log"), (Lines{"1:6", "2:4"}));
  EXPECT_EQ(sql("SELECT balance FROM account WHERE name = 'ann'"), Lines{"4"});
}

TEST_F(Into, value_that_does_not_fit_its_type_parks_the_message) {
  start(R"toml(
[[do]]
sql = "SELECT owner FROM account WHERE name = :name"
into = { owner = "integer" }
[[emit]]
to = "file:a/c"
body = { owner = "owner", amount = "amount" }
)toml");
  const Lines outcomes = run({line(1, "ann", 4), line(2, "bob", 4)});
  EXPECT_NE(outcomes[0].find("\"Ann\" is no integer"), std::string::npos) << outcomes[0];
  EXPECT_NE(outcomes[1].find("(column 1 of a step) is null"), std::string::npos) << outcomes[1];
  EXPECT_TRUE(emitted_bodies().empty());
}

// SQLite has no types for them: moments are milliseconds, truth is 0 and 1, money is its digits.
TEST_F(Into, moments_truth_and_money_come_back_from_sqlite) {
  open(plan_with(R"toml(
[[do]]
sql = "INSERT INTO typed VALUES (:id, :at, :flag, :price, :name, :amount)"
[[do]]
sql = "SELECT at, at, flag, price, CAST(price AS NUMERIC) FROM typed WHERE id = :id"
into.a = "timestamp"
into.b = "milliseconds"
into.c = "boolean"
into.d = "decimal"
into.e = "number"
[[emit]]
to = "file:a/c"
timestamp = "a"
body = { a = "a", b = "b", c = "c", d = "d", e = "e" }
[values.at]
json = "/at"
type = "timestamp"
[values.flag]
json = "/flag"
type = "boolean"
[values.price]
json = "/price"
type = "decimal"
)toml"));
  sql("CREATE TABLE typed (id TEXT, at INTEGER, flag INTEGER, price TEXT, name TEXT, amount "
      "INTEGER)");
  EXPECT_EQ(run({R"({"id":"1","name":"n","amount":1,"at":"2026-10-25T02:30:00.1239+02:00",)"
                 R"("flag":true,"price":1.10})"}),
            Lines{"applied"});
  EXPECT_EQ(sql("SELECT at FROM typed"), Lines{"1792888200123"});
  EXPECT_EQ(emitted_bodies(),
            Lines{R"({"a":1792888200123,"b":1792888200123,"c":true,"d":1.10,"e":1.1})"});
  EXPECT_EQ(emitted().at(0).timestamp_ms, 1792888200123);
}

TEST(IntoPlan, what_cannot_be_read_or_used_is_refused_with_its_place) {
  const auto expect = [](const std::string& rest, const std::string& part) {
    const std::string complaint = complaint_about(plan_with(rest));
    EXPECT_NE(complaint.find(part), std::string::npos) << complaint;
  };
  const auto step = [](const std::string& into, const std::string& more = "") {
    return "[[do]]\nsql = \"SELECT :name, :amount\"\ninto = " + into + "\n" + more;
  };
  expect(step("{ amount = \"integer\" }"), "there is another value \"amount\"");
  expect(step("{ a = \"int\" }"), "cannot be \"int\"");
  expect(step("{ a = { typ = \"integer\" } }"), "did you mean \"type\"?");
  expect(step("{}"), "names no column");
  expect(step("{ a = \"integer\" }", "rows = 2"), "is 1 where into reads a row");
  expect(step("{ a = \"integer\" }", "each = \"/x\""), "drop each");
  expect(step("{ a = \"integer\" }"), "\"a\" is used by nobody");
  expect("[[do]]\nsql = \"SELECT :a\"\n" + step("{ a = \"integer\" }"), "not read yet");
}

}  // namespace
}  // namespace once
