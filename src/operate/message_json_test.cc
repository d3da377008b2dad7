// SPDX-License-Identifier: Apache-2.0
#include "operate/message_json.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace once::operate {
namespace {

using namespace std::string_view_literals;

TEST(MessageJson, every_byte_comes_back_from_json) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const std::array headers{HeaderView{"plain", "text"}, HeaderView{"plain", all}};
  Delivery delivery;
  delivery.partition = "orders/3";
  delivery.offset = 42;
  delivery.id = all;
  delivery.key = "key";
  delivery.body = all;
  delivery.headers = headers;
  delivery.timestamp_ms = 1700000000000;
  const Json json = json_of(delivery);
  EXPECT_EQ(json["partition"], 3);
  EXPECT_EQ(json["encoding"], "base64");
  EXPECT_FALSE(json.contains("id"));

  const Message message = message_of(json.dump()).value();
  EXPECT_EQ(message.id, all);
  EXPECT_EQ(message.key, "key");
  EXPECT_EQ(message.body, all);
  EXPECT_EQ(message.headers, (std::vector<Header>{{"plain", "text"}, {"plain", all}}));
  EXPECT_EQ(message.timestamp_ms, 1700000000000);
}

TEST(MessageJson, absent_parts_are_null_in_both_directions) {
  const std::array headers{HeaderView{"none", {}}, HeaderView{"empty", ""}};
  Delivery delivery;
  delivery.id = "tombstone";
  delivery.headers = headers;
  const Json json = json_of(delivery);
  EXPECT_TRUE(json["key"].is_null());
  EXPECT_TRUE(json["body"].is_null());
  EXPECT_TRUE(json["headers"][0]["value"].is_null());
  EXPECT_EQ(json["headers"][1]["value"], "");
  const Message message = message_of(json.dump()).value();
  EXPECT_EQ(message.key, std::nullopt);
  EXPECT_EQ(message.body, std::nullopt);
  EXPECT_EQ(message.headers, (std::vector<Header>{{"none", std::nullopt}, {"empty", ""}}));
  EXPECT_EQ(message_of(R"({"key":"","body":""})").value(), (Message{.key = "", .body = ""}));
  EXPECT_EQ(message_of(R"({"headers":{"a":null}})").value().headers,
            (std::vector<Header>{{"a", std::nullopt}}));
}

TEST(MessageJson, text_stays_text) {
  Delivery delivery;
  delivery.body = "grüße \"quoted\" \n";
  const Json json = json_of(delivery);
  EXPECT_EQ(json["encoding"], "text");
  EXPECT_EQ(json["body"], "grüße \"quoted\" \n");
}

TEST(MessageJson, body_that_is_an_object_is_kept_byte_for_byte) {
  const auto message =
      message_of(R"({"id":"1","body":{"n": 123456789012345678901234567890.10, "b":[1]}})");
  EXPECT_EQ(message.value().body, R"({"n": 123456789012345678901234567890.10, "b":[1]})");
  EXPECT_EQ(message_of(R"({"body":[1, 2]})").value().body, "[1, 2]");
}

TEST(MessageJson, headers_are_an_object_or_an_array) {
  EXPECT_EQ(message_of(R"({"headers":{"a":"1"}})")->headers, (std::vector<Header>{{"a", "1"}}));
  EXPECT_EQ(message_of(R"({"headers":[{"name":"a","value_base64":"Zg=="}]})")->headers,
            (std::vector<Header>{{"a", "f"}}));
}

TEST(MessageJson, wrong_lines_are_input_errors_that_name_the_field) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> wrong{
      {{"nonsense", "not JSON"},
       {"[1]", "not an object"},
       {R"({"id":5})", "\"id\""},
       {R"({"key":5})", "\"key\""},
       {R"({"headers":"x"})", "\"headers\""},
       {R"({"headers":[{"value":"x"}]})", "header"},
       {R"({"headers":[{"name":"x","bytes":"x"}]})", "\"bytes\""},
       {R"({"body":5})", "\"body\""},
       {R"({"body":"x","encoding":"hex"})", "\"encoding\""},
       {R"({"timestamp_ms":-1})", "\"timestamp_ms\""},
       {R"({"timestamp_ms":"now"})", "\"timestamp_ms\""},
       {R"({"bodi":"x"})", "\"bodi\""}}};
  for (const auto& [line, part] : wrong) {
    const auto message = message_of(line);
    ASSERT_FALSE(message) << line;
    EXPECT_EQ(message.error().tag, "input");
    EXPECT_NE(message.error().text.find(part), std::string::npos) << message.error().text;
  }
}

TEST(MessageJson, field_that_stands_twice_is_refused_but_nobody_looks_into_a_body) {
  for (const auto line :
       {R"({"id":"a","id":"a"})"sv, R"({"body":"a","body":"b"})"sv, R"({"id":"a","\u0069d":"b"})"sv,
        R"({"headers":{"h":"1","h":"2"}})"sv, R"({"headers":[{"name":"h","name":"i"}]})"sv,
        R"({"body":{"a":1},"id":"a","body":{}})"sv}) {
    const auto message = message_of(line);
    ASSERT_FALSE(message) << line;
    EXPECT_EQ(message.error().tag, "input");
    EXPECT_NE(message.error().text.find("twice"), std::string::npos) << message.error().text;
  }
  EXPECT_EQ(message_of(R"({"body":{"a":1,"a":2},"id":"x"})")->body, R"({"a":1,"a":2})");
  EXPECT_EQ(message_of(R"({"headers":[{"name":"h"},{"name":"h"}]})")->headers.size(), 2u);
}

}  // namespace
}  // namespace once::operate
