// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "config/plan_testing.h"
#include "config/recipe_testing.h"

namespace once {
namespace {

using testing::complaint_about;
using testing::RecipeBank;
using Lines = std::vector<std::string>;

constexpr std::string_view inventory = R"toml(
scope = "s"
source = { url = "file:a/b", id = "json:/id" }
store = { url = "sqlite::memory:" }
[values]
sku = { element = "/sku" }
count = { element = "/count", type = "integer" }
[[do]]
each = "/lines"
when = { value = "count", above = 0 }
sql = "UPDATE stock SET pieces = pieces - :count WHERE sku = :sku AND pieces >= :count"
rows = 1
otherwise = { reject = "sold out" }
[[do]]
each = "/lines"
sql = "INSERT INTO line (order_id, n, sku) VALUES (:id, :element_index, :sku)"
[[emit]]
to = "file:a/c"
each = "/lines"
key = "sku"
body = { sku = "sku", count = "count" }
)toml";

class Each : public RecipeBank {
 protected:
  void SetUp() override {
    open(inventory);
    sql("CREATE TABLE stock (sku TEXT PRIMARY KEY, pieces INTEGER NOT NULL)");
    sql("CREATE TABLE line (order_id TEXT, n INTEGER, sku TEXT)");
    sql("INSERT INTO stock VALUES ('a', 5), ('b', 2)");
  }
};

TEST_F(Each, step_runs_for_every_element_in_order) {
  EXPECT_EQ(run({R"({"id":"1","lines":[{"sku":"a","count":2},{"sku":"b","count":1},
                              {"sku":"x","count":0}]})"}),
            Lines{"applied"});
  EXPECT_EQ(sql("SELECT sku || pieces FROM stock ORDER BY sku"), (Lines{"a3", "b1"}));
  EXPECT_EQ(sql("SELECT order_id || n || sku FROM line"), (Lines{"10a", "11b", "12x"}));
  EXPECT_EQ(emitted_bodies(), (Lines{R"({"count":2,"sku":"a"})", R"({"count":1,"sku":"b"})",
                                     R"({"count":0,"sku":"x"})"}));
  const Lines ids = emitted_ids();
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_NE(ids[0], ids[1]);
}

TEST_F(Each, one_element_that_cannot_be_had_takes_back_all_of_the_message) {
  EXPECT_EQ(run({R"({"id":"1","lines":[{"sku":"a","count":1},{"sku":"b","count":3}]})",
                 R"({"id":"2","lines":[{"sku":"b","count":2}]})",
                 R"({"id":"3","lines":[{"sku":"a","count":5},{"sku":"b","count":1}]})"}),
            (Lines{"rejected: element 1 of /lines: sold out", "applied",
                   "rejected: element 1 of /lines: sold out"}));
  EXPECT_EQ(sql("SELECT sku || pieces FROM stock ORDER BY sku"), (Lines{"a5", "b0"}));
  EXPECT_EQ(sql("SELECT order_id FROM line"), Lines{"2"});
  EXPECT_EQ(emitted_bodies(), Lines{R"({"count":2,"sku":"b"})"});
}

TEST_F(Each, array_that_is_empty_has_no_effect_and_one_that_is_none_parks) {
  const Lines outcomes =
      run({R"({"id":"1","lines":[]})", R"({"id":"2"})", R"({"id":"3","lines":{"sku":"a"}})",
           R"({"id":"4","lines":null})", R"({"id":"5","lines":[{"sku":"a"}]})"});
  ASSERT_EQ(outcomes.size(), 5u);
  EXPECT_EQ(outcomes[0], "no_effect");
  EXPECT_EQ(outcomes[1], "parked: each = \"/lines\": it is not there");
  EXPECT_EQ(outcomes[2], "parked: each = \"/lines\": it is not an array");
  EXPECT_EQ(outcomes[3], "parked: each = \"/lines\": it is not an array");
  // The condition does not hold for a count that is missing; the second step does not need it.
  EXPECT_EQ(
      outcomes[4],
      "parked: element 0 of /lines: the value \"count\" (/count in the element) is not there");
  EXPECT_EQ(sql("SELECT count(*) FROM line"), Lines{"0"});
}

TEST_F(Each, condition_that_is_not_about_elements_is_asked_before_the_array_is_looked_for) {
  std::string text(inventory);
  const std::string guard = "when = { json = \"/lines\", exists = true }\n";
  const std::string per_element = "when = { value = \"count\", above = 0 }\n";
  text.replace(text.find(per_element), per_element.size(), guard);
  text.insert(text.find("sql = \"INSERT"), guard);
  text.insert(text.find("key = \"sku\""), guard);
  open(text);
  EXPECT_EQ(run({R"({"id":"1"})"}), Lines{"no_effect"});
}

TEST_F(Each, array_is_limited) {
  std::string lines;
  for (int i = 0; i <= 10'000; ++i) lines += i == 0 ? "1" : ",1";
  const Lines outcomes = run({R"({"id":"1","lines":[)" + lines + "]}"});
  EXPECT_NE(outcomes.at(0).find("more than 10000 elements"), std::string::npos) << outcomes[0];
}

TEST_F(Each, body_that_is_an_array_of_plain_values) {
  std::string text(inventory.substr(0, inventory.find("[values]")));
  text.replace(text.find("json:/id"), 8, "key");
  text += R"toml(
[values]
all = { element = "" }
[[do]]
each = ""
sql = "INSERT INTO line (order_id, n, sku) VALUES (:id, :element_index, :all)"
)toml";
  open(text);
  sql("CREATE TABLE line (order_id TEXT, n INTEGER, sku TEXT)");
  EXPECT_EQ(run({R"(["x", 7, true])"}, "k"), Lines{"applied"});
  EXPECT_EQ(sql("SELECT order_id || n || sku FROM line"), (Lines{"k0x", "k17", "k2true"}));
}

TEST(EachPlan, value_of_an_element_belongs_into_a_step_with_each) {
  const auto changed = [](std::string_view what, std::string_view with) {
    std::string text(inventory);
    text.replace(text.find(what), what.size(), with);
    return complaint_about(text);
  };
  EXPECT_NE(changed("each = \"/lines\"\nsql", "sql").find("is one of an element"),
            std::string::npos);
  EXPECT_NE(changed("each = \"/lines\"", "each = \"lines\"").find("a JSON pointer to an array"),
            std::string::npos);
  EXPECT_NE(changed("key = \"sku\"", "id = \"id\"").find("is the same for all elements"),
            std::string::npos);
  EXPECT_EQ(changed("key = \"sku\"", "id = [\"id\", \"sku\"]"), "");
}

}  // namespace
}  // namespace once
