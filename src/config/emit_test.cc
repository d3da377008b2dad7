// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "config/plan_testing.h"
#include "config/recipe_testing.h"

namespace once {
namespace {

using testing::complaint_about;
using testing::delivery_of;
using testing::RecipeBank;

std::string plan_with(const std::string& emits) {
  return R"toml(
scope = "s"
source = { url = "file:a/b", id = "json:/id" }
store = { url = "sqlite:s.db" }
)toml" + emits;
}

class Emit : public RecipeBank {
 protected:
  // What a message causes.
  Message only(const std::string& emit, const std::string& body,
               std::span<const HeaderView> headers = {}) {
    open(plan_with(emit));
    Delivery delivery = delivery_of(body);
    delivery.headers = headers;
    delivery.timestamp_ms = 5000;
    EXPECT_EQ(run({delivery}), Lines{"applied"});
    const auto messages = emitted();
    EXPECT_EQ(messages.size(), 1u);
    return messages.empty() ? Message{} : messages[0];
  }
};

TEST_F(Emit, headers_of_the_cause_are_passed_on_all_or_some) {
  const std::vector<HeaderView> headers{
      {"traceparent", "00-1"}, {"region", "eu"}, {"empty", {}}, {"once-reason", "x"}};
  const std::string emit = "[[emit]]\nto = \"file:a/c\"\n";
  EXPECT_EQ(only(emit, R"({"id":"1"})", headers).headers, std::vector<Header>{});
  EXPECT_EQ(
      only(emit + "pass_headers = true", R"({"id":"1"})", headers).headers,
      (std::vector<Header>{{"traceparent", "00-1"}, {"region", "eu"}, {"empty", std::nullopt}}));
  EXPECT_EQ(only(emit + "pass_headers = [\"region\", \"none\"]", R"({"id":"1"})", headers).headers,
            (std::vector<Header>{{"region", "eu"}}));
  EXPECT_EQ(
      only(emit + "pass_headers = true\nheaders = { region = { constant = \"us\" } }",
           R"({"id":"1"})", headers)
          .headers,
      (std::vector<Header>{{"traceparent", "00-1"}, {"empty", std::nullopt}, {"region", "us"}}))
      << "what the emit sets takes the place of what is passed on";
}

TEST_F(Emit, constants_stand_in_the_place_of_values) {
  const Message message = only(
      R"toml([[emit]]
to = "file:a/c"
id = ["id", { constant = "v2" }]
key = { constant = "all" }
body.order = "id"
body.kind = { constant = "paid \"now\"" }
body.version = 2
body.rate = 0.5
body.test = false
body.in = { n = 1 }
)toml",
      R"({"id":"1"})");
  EXPECT_EQ(message.key, "all");
  EXPECT_EQ(
      message.body,
      R"({"in":{"n":1},"kind":"paid \"now\"","order":"1","rate":0.5,"test":false,"version":2})");
  EXPECT_NE(message.id, "1");
}

TEST_F(Emit, tombstone_has_no_body_and_the_time_can_be_that_of_a_value) {
  const Message message = only(
      R"toml([[emit]]
to = "file:a/c"
key = { json = "/user" }
tombstone = true
timestamp = { json = "/at", type = "timestamp" }
)toml",
      R"({"id":"1","user":"ann","at":"1970-01-01T00:00:07.5Z"})");
  EXPECT_EQ(message.key, "ann");
  EXPECT_EQ(message.body, std::nullopt);
  EXPECT_EQ(message.timestamp_ms, 7500);
  EXPECT_EQ(only("[[emit]]\nto = \"file:a/c\"", R"({"id":"1"})").timestamp_ms, 5000);
}

constexpr const char* by_region = R"toml(
[[emit]]
when = { json = "/kind", is = "paid" }
to = { value = "region", choose = { eu = "file:a/eu", us = "file:a/us" }%s }
[values]
region = { json = "/region", null = true }
)toml";

std::string with_default(const std::string& text) {
  std::string made(by_region);
  return made.replace(made.find("%s"), 2, text);
}

TEST_F(Emit, destination_is_chosen_by_a_value) {
  open(plan_with(with_default("")));
  EXPECT_EQ(
      run({R"({"id":"1","kind":"paid","region":"eu"})", R"({"id":"2","kind":"paid","region":"us"})",
           R"({"id":"3","kind":"paid","region":"mars"})", R"({"id":"4","kind":"made"})",
           R"({"id":"5","kind":"paid"})"}),
      (Lines{"applied", "applied", "parked: the message of line 6 has no destination for \"mars\"",
             "no_effect", "parked: the message of line 6 has no destination for \"\""}));
  EXPECT_EQ(destinations(), (Lines{"run/s/file:a/eu 1", "run/s/file:a/us 2"}));
}

TEST_F(Emit, destination_that_is_not_chosen_is_the_default) {
  open(plan_with(with_default(", default = \"file:a/rest\"")));
  EXPECT_EQ(run({R"({"id":"1","kind":"paid","region":"eu"})",
                 R"({"id":"2","kind":"paid","region":"mars"})", R"({"id":"3","kind":"paid"})",
                 R"({"id":"4","kind":"made","region":"eu"})"}),
            (Lines{"applied", "applied", "applied", "no_effect"}));
  EXPECT_EQ(destinations(),
            (Lines{"run/s/file:a/eu 1", "run/s/file:a/rest 2", "run/s/file:a/rest 3"}));
}

TEST(EmitPlan, what_says_two_things_or_nothing_is_refused_with_its_place) {
  const auto expect = [](const std::string& emit, const std::string& part) {
    const std::string complaint = complaint_about(plan_with("[[emit]]\n" + emit));
    EXPECT_NE(complaint.find(part), std::string::npos) << emit << ": " << complaint;
    EXPECT_TRUE(complaint.starts_with("p.toml:")) << complaint;
  };
  expect("to = \"file:a/c\"\ntombstone = true\nbody = \"id\"", "drop one of the two");
  expect("to = \"file:a/c\"\ntombstone = false", "is either true or not there");
  expect("to = { value = \"id\" }", "to.choose is missing");
  expect("to = { choose = { a = \"file:a/c\" } }", "to.value is missing");
  expect("to = { value = \"id\", choose = { a = 5 } }", "is a URL");
  expect("to = { value = \"id\", chose = { a = \"file:a/c\" } }", "did you mean \"choose\"?");
  expect("key = \"id\"", "emit.to is missing");
  expect("to = \"file:a/c\"\nbody = { a = nan }", "a finite number");
  expect("to = \"file:a/c\"\nkey = { constnt = \"a\" }", "did you mean \"constant\"?");
  expect("to = \"file:a/c\"\npass_headers = \"all\"", "must be true or false");
}

}  // namespace
}  // namespace once
