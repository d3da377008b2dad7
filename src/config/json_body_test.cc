// SPDX-License-Identifier: Apache-2.0
#include "config/json_body.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "config/message_values.h"
#include "config/plan_testing.h"

namespace once {
namespace {

using testing::delivery_of;

constexpr std::array<std::string_view, 12> not_json{R"({"v":"1"}{"v":"2"})",
                                                    R"({"v":"1"},{"v":"2"})",
                                                    R"({"v":"1"}})",
                                                    R"({"v":"1","w":tru})",
                                                    R"({"v":"1","w":01})",
                                                    R"({"v":"1","w":"\x"})",
                                                    "not json",
                                                    "nullx",
                                                    "12x",
                                                    "truex",
                                                    "\"a\"b",
                                                    " "};

// Every text of up to five of these tokens, against another parser.
TEST(JsonBody, all_of_a_body_must_be_json) {
  constexpr std::array<std::string_view, 11> tokens{"{", "}", "[", "]",    ",",    ":",
                                                    " ", "1", "x", "null", "\"a\""};
  constexpr std::size_t count_max = 5;
  std::size_t accepted = 0;
  std::size_t texts = 1;
  for (std::size_t count = 1; count <= count_max; ++count) {
    texts *= tokens.size();
    for (std::size_t number = 0; number < texts; ++number) {
      std::string text;
      for (std::size_t i = 0, rest = number; i < count; ++i, rest /= tokens.size())
        text += tokens[rest % tokens.size()];
      const bool expected = nlohmann::json::accept(text);
      ASSERT_EQ(JsonBody::parse(text).has_value(), expected) << text;
      accepted += expected ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 100u);
}

TEST(JsonBody, neither_default_nor_null_stands_in_for_a_body_that_is_not_json) {
  const std::vector<ValueRule> rules{
      {.name = "with_default", .field = "/d", .fallback = "x"},
      {.name = "nullable", .field = "/n", .nullable = true},
      {.name = "there", .field = "/v"},
  };
  for (const std::string_view body : not_json)
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const Delivery delivery = delivery_of(body);
      MessageValues values(rules, delivery);
      const auto cell = values.cell(i);
      ASSERT_FALSE(cell) << body;
      EXPECT_EQ(cell.error().remedy, Remedy::park);
      EXPECT_NE(cell.error().text.find("the body is not JSON"), std::string::npos)
          << cell.error().text;
      EXPECT_FALSE(values.cell_or_null(i)) << "a condition on " << body;
    }
  for (const std::string_view body : {"12", "null", "\"a\"", "[]", "{}", " {\"v\":1}\n"}) {
    const Delivery delivery = delivery_of(body);
    MessageValues values(rules, delivery);
    EXPECT_TRUE(values.cell(0)) << body;
    EXPECT_TRUE(values.cell(1)) << body;
  }
}

TEST(JsonBody, nesting_has_a_limit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(JsonBody::parse(nested(1000)));
  const auto deep = JsonBody::parse(nested(1'000'000));
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().text.find("deep"), std::string::npos) << deep.error().text;
}

}  // namespace
}  // namespace once
