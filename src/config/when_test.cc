// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/plan_testing.h"

namespace once {
namespace {

using testing::complaint_about;
using testing::delivery_of;
using testing::parsed;

// A pipeline that wants the messages for which this condition holds.
std::string plan_with(const std::string& when) {
  return R"toml(
scope = "s"
source = { url = "file:a/b", id = "none", when = )toml" +
         when + R"toml( }
store = { url = "sqlite:s.db" }
[values]
amount = { json = "/amount", type = "decimal" }
count = { json = "/count", type = "integer", default = 7 }
at = { json = "/at", type = "timestamp" }
kind = { json = "/kind" }
raw = { json = "/raw", type = "json", null = true }
[[do]]
sql = "INSERT INTO t VALUES (:amount, :count, :at, :kind, :raw)"
)toml";
}

Result<bool> holds(const std::string& when, const std::string& body) {
  const Plan plan = ONCE_TRY(parsed(plan_with(when)));
  Delivery delivery = delivery_of(body);
  delivery.key = "ann";
  return plan.options.wanted(delivery);
}

TEST(When, equal_to_one_of_a_list) {
  EXPECT_EQ(holds(R"({ json = "/kind", is = "paid" })", R"({"kind":"paid"})"), true);
  EXPECT_EQ(holds(R"({ json = "/kind", is = ["a", "b"] })", R"({"kind":"b"})"), true);
  EXPECT_EQ(holds(R"({ json = "/kind", is = ["a", "b"] })", R"({"kind":"c"})"), false);
  EXPECT_EQ(holds(R"({ json = "/n", is = 5 })", R"({"n":5})"), true);
  EXPECT_EQ(holds(R"({ json = "/b", is = true })", R"({"b":true})"), true);
  EXPECT_EQ(holds(R"({ key = true, is = "ann" })", R"({})"), true);
}

TEST(When, numbers_are_compared_by_their_value_and_decimals_exactly) {
  EXPECT_EQ(holds(R"({ value = "amount", is = 1.5 })", R"({"amount":1.50})"), true);
  EXPECT_EQ(holds(R"({ value = "amount", above = "0.1" })",
                  R"({"amount":0.1000000000000000000000000001})"),
            true);
  EXPECT_EQ(holds(R"({ value = "amount", above = 100 })", R"({"amount":"99"})"), false);
  EXPECT_EQ(holds(R"({ json = "/amount", above = 100 })", R"({"amount":99})"), false)
      << "an untyped value is compared with a number as a number";
  EXPECT_EQ(holds(R"({ json = "/amount", above = 9.5 })", R"({"amount":10})"), true);
  EXPECT_EQ(holds(R"({ value = "count", at_least = 3, at_most = 5 })", R"({"count":5})"), true);
  EXPECT_EQ(holds(R"({ value = "count", at_least = 3, at_most = 5 })", R"({"count":6})"), false);
  EXPECT_EQ(holds(R"({ value = "count", below = 3 })", R"({"count":3})"), false);
}

TEST(When, times_are_compared_as_moments) {
  const std::string when = R"({ value = "at", below = "2026-03-29T01:00:00Z" })";
  EXPECT_EQ(holds(when, R"({"at":"2026-03-29T01:59:59+01:00"})"), true);
  EXPECT_EQ(holds(when, R"({"at":"2026-03-29T03:00:00+02:00"})"), false);
  EXPECT_EQ(holds(R"({ json = "/at", below = 2026-03-29T01:00:00Z })",
                  R"({"at":"2026-03-29T01:59:59+01:00"})"),
            true);
}

TEST(When, prefix_of_text) {
  EXPECT_EQ(holds(R"({ value = "kind", prefix = ["order.", "cart."] })", R"({"kind":"cart.new"})"),
            true);
  EXPECT_EQ(holds(R"({ value = "kind", prefix = "order." })", R"({"kind":"order"})"), false);
}

TEST(When, absent_and_null_are_missing_and_fit_nothing_else) {
  for (const char* body : {R"({})", R"({"kind":null})"}) {
    EXPECT_EQ(holds(R"({ value = "kind", missing = true })", body), true) << body;
    EXPECT_EQ(holds(R"({ value = "kind", exists = true })", body), false) << body;
    EXPECT_EQ(holds(R"({ value = "kind", is = "" })", body), false) << body;
    EXPECT_EQ(holds(R"({ not = { value = "kind", is = "a" } })", body), true) << body;
    EXPECT_EQ(holds(R"({ json = "/kind", exists = true })", body), false) << body;
  }
  EXPECT_EQ(holds(R"({ value = "count", exists = true, is = 7 })", R"({})"), true)
      << "a default is there";
  EXPECT_EQ(holds(R"({ json = "/kind", missing = true })", ""), true) << "no body, no member";
}

TEST(When, all_any_and_not_make_a_tree_that_stops_when_it_is_decided) {
  const std::string tree =
      R"({ all = [ { value = "kind", is = "paid" }, { any = [ { value = "amount", above = 10 },)"
      R"( { not = { json = "/test", exists = true } } ] } ] })";
  EXPECT_EQ(holds(tree, R"({"kind":"paid","amount":11,"test":1})"), true);
  EXPECT_EQ(holds(tree, R"({"kind":"paid","amount":10})"), true);
  EXPECT_EQ(holds(tree, R"({"kind":"paid","amount":10,"test":1})"), false);
  EXPECT_EQ(holds(tree, R"({"kind":"made","amount":"no number"})"), false);
}

TEST(When, what_is_not_of_its_type_is_parked_and_named) {
  const auto wrong = holds(R"({ value = "amount", above = 1 })", R"({"amount":"x"})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().remedy, Remedy::park);
  EXPECT_NE(wrong.error().text.find("\"amount\""), std::string::npos) << wrong.error().text;
  EXPECT_FALSE(holds(R"({ json = "/a", exists = true })", R"({"a" 1})"));
}

TEST(When, a_condition_that_means_nothing_is_refused_with_its_place) {
  const auto complaint = [](const std::string& when) { return complaint_about(plan_with(when)); };
  const auto expect = [&](const std::string& when, const std::string& part) {
    EXPECT_NE(complaint(when).find(part), std::string::npos) << when << ": " << complaint(when);
  };
  expect(R"({ value = "kind", abov = 1 })", "did you mean \"above\"?");
  expect(R"({ value = "kinds", is = 1 })", "did you mean \"kind\"?");
  expect(R"({ value = "amount", above = "much" })", "p.toml:3:");
  expect(R"({ value = "amount", above = "much" })", "\"much\" is no decimal number");
  expect(R"({ value = "amount", above = [1, 2] })", "not with a list");
  expect(R"({ value = "amount", prefix = "1" })", "only text has a prefix");
  expect(R"({ value = "raw", above = 1 })", "have no order");
  expect(R"({ value = "kind" })", "tests a value: is, exists");
  expect(R"({ is = "a" })", "must say one place");
  expect(R"({ value = "kind", json = "/kind", is = "a" })", "say two things");
  expect(R"({ all = [], is = "a" })", "stands alone");
  expect(R"({ all = [] })", "is a list of conditions");
  expect(R"({ any = [ "kind" ] })", "a condition is a table");
  expect(R"({ value = "kind", exists = false })", "the opposite of exists");
  expect(R"({ value = "id", is = "a" })", "before the id");
  std::string deep = R"({ value = "kind", is = "a" })";
  for (int i = 0; i < 16; ++i) deep = "{ not = " + deep + " }";
  expect(deep, "at most 16 deep");
}

TEST(When, empty_messages_are_skipped_where_the_file_says_so) {
  std::string text = plan_with(R"({ value = "kind", is = "a" }, skip = "empty")");
  const Plan plan = parsed(text).value();
  Delivery tombstone;
  tombstone.body = {};
  EXPECT_EQ(plan.options.wanted(tombstone), false);
  EXPECT_EQ(plan.options.wanted(delivery_of("")), false);
  EXPECT_EQ(plan.options.wanted(delivery_of(R"({"kind":"a"})")), true);
}

// It is not known what it says, so it is not a message of another kind.
TEST(When, body_that_is_not_json_is_parked_and_not_passed_over) {
  for (const char* body : {"not json", "nullx", R"({"kind":"b"}{"kind":"a"})", R"({"kind":"b"}})",
                           R"({"kind":"b","w":tru})"})
    for (const char* when :
         {R"({ value = "kind", is = "a" })", R"({ value = "kind", missing = true })",
          R"({ value = "count", is = 7 })"}) {
      const auto found = holds(when, body);
      ASSERT_FALSE(found) << when << body;
      EXPECT_EQ(found.error().remedy, Remedy::park);
      EXPECT_NE(found.error().text.find("not JSON"), std::string::npos) << found.error().text;
    }
}

}  // namespace
}  // namespace once
