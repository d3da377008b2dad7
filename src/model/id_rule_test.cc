// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <once/identity.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "model/ledger.h"

namespace once {
namespace {

Delivery with_body(std::string_view body) {
  Delivery delivery;
  delivery.partition = "orders-0";
  delivery.offset = 41;
  delivery.body = body;
  return delivery;
}

std::string id(std::string_view rule, const Delivery& delivery) {
  auto found = IdRule::parse(rule).value().id_of(delivery);
  EXPECT_TRUE(found) << rule << ": " << (found ? "" : found.error().text);
  return found.value_or("");
}

Error error(std::string_view rule, const Delivery& delivery) {
  auto found = IdRule::parse(rule).value().id_of(delivery);
  EXPECT_FALSE(found) << rule << " found " << found.value_or("");
  return found ? Error{} : found.error();
}

void expect_no_id(std::string_view rule, const Delivery& delivery) {
  const Error found = error(rule, delivery);
  EXPECT_EQ(found.remedy, Remedy::park) << rule;
  EXPECT_EQ(found.tag, "no_id") << rule;
  EXPECT_NE(found.text.find(rule), std::string::npos) << found.text;
  EXPECT_NE(found.text.find("offset 41"), std::string::npos) << found.text;
}

TEST(IdRule, text_is_what_was_parsed) {
  for (const char* text :
       {"carried", "key", "header:order-id", "header:a:b", "json:/order/id", "json:/a,/b", "json:/",
        "json:/a,b,/c~1d~0", "cloudevents", "coordinates", "digest:", "digest:/a,/b"})
    EXPECT_EQ(IdRule::parse(text).value().text(), text);
  EXPECT_EQ(IdRule::parse("json:/a,b,/c").value().fields, (std::vector<std::string>{"/a,b", "/c"}));
}

TEST(IdRule, nonsense_is_refused_with_the_list_of_rules) {
  for (const char* text :
       {"", "id", "json", "json:", "json:a", "json:/a~2", "json:/~", "header", "header:", "key:x",
        "carried:", "digest", "digest:x", "cloudevents:/a", "coordinates:1", " key", "KEY"}) {
    const auto rule = IdRule::parse(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_EQ(rule.error().remedy, Remedy::stop);
    EXPECT_EQ(rule.error().tag, "config");
    EXPECT_NE(rule.error().text.find("coordinates"), std::string::npos);
  }
}

TEST(IdRule, takes_the_carried_id_or_its_header) {
  Delivery delivery = with_body("");
  delivery.id = "order 100 paid";
  EXPECT_EQ(id("carried", delivery), "order 100 paid");
  delivery.id = {};
  const std::vector<HeaderView> headers{{"once-id", "from the header"}};
  delivery.headers = headers;
  EXPECT_EQ(id("carried", delivery), "from the header");
  delivery.headers = {};
  expect_no_id("carried", delivery);
}

TEST(IdRule, takes_key_and_header) {
  Delivery delivery = with_body("");
  expect_no_id("key", delivery);
  expect_no_id("header:order", delivery);
  delivery.key = std::string_view("k\0k", 3);
  EXPECT_EQ(id("key", delivery), std::string("k\0k", 3));
  const std::vector<HeaderView> headers{{"order", "7"}, {"order", "8"}, {"Order", "9"}};
  delivery.headers = headers;
  EXPECT_EQ(id("header:order", delivery), "7");
  const std::vector<HeaderView> empty{{"order", ""}};
  delivery.headers = empty;
  expect_no_id("header:order", delivery);
}

TEST(IdRule, takes_fields_of_the_body) {
  const auto body = with_body(
      R"({"order": {"id": 100, "lines": ["a", "b"]}, "name": "ünï\u0041", "a/b": 1, "m~n": 2,
          "yes": true, "big": 123456789012345678901234567890, "half": 0.5, "": "root"})");
  EXPECT_EQ(id("json:/order/id", body), "100");
  EXPECT_EQ(id("json:/order/lines/1", body), "b");
  EXPECT_EQ(id("json:/name", body), "ünïA");
  EXPECT_EQ(id("json:/a~1b", body), "1");
  EXPECT_EQ(id("json:/m~0n", body), "2");
  EXPECT_EQ(id("json:/yes", body), "true");
  EXPECT_EQ(id("json:/half", body), "0.5");
  EXPECT_EQ(id("json:/big", body), "123456789012345678901234567890");
  EXPECT_EQ(id("json:/order/id,/name", body), "100|ünïA");
}

TEST(IdRule, a_number_is_the_same_however_it_is_written) {
  for (const char* body : {R"({"id":100})", R"({"id":"100"})", R"({"id": 100.0 })", R"({"id":1e2})",
                           R"({"x":{},"id":1.00E+2})"})
    EXPECT_EQ(id("json:/id", with_body(body)), "100") << body;
  EXPECT_EQ(id("json:/id", with_body(R"({"id":18446744073709551615})")), "18446744073709551615");
  EXPECT_EQ(id("json:/id", with_body(R"({"id":-9223372036854775808})")), "-9223372036854775808");
}

TEST(IdRule, every_digit_of_a_number_counts) {
  const std::vector<std::pair<const char*, const char*>> ids{
      {"1.000000000000000000", "1"},
      {"5.000000000000000000", "5"},
      {"1763329595.123456701", "1763329595.123456701"},
      {"1763329595.123456702", "1763329595.123456702"},
      {"123456789012345678.5", "123456789012345678.5"},
      {"9007199254740993.0", "9007199254740993"},
      {"100000000000000000000000", "100000000000000000000000"},
      {"1e23", "100000000000000000000000"},
      {"100000000000000000000001.0", "100000000000000000000001"},
      {"-0.0", "0"},
      {"0.1", "0.1"},
      {"0.10000000000000001", "0.10000000000000001"}};
  for (const auto& [number, expected] : ids) {
    const std::string text = fmt::format(R"({{"a":{},"b":{}}})", number, number);
    const std::string one = fmt::format(R"({{"a":{},"b":{}}})", expected, expected);
    EXPECT_EQ(id("json:/a", with_body(text)), expected);
    EXPECT_EQ(id("json:/a,/b", with_body(text)), fmt::format("{}|{}", expected, expected));
    EXPECT_EQ(id("digest:/a", with_body(text)), id("digest:/a", with_body(one))) << number;
  }
  EXPECT_NE(id("digest:/a", with_body(R"({"a":[1.000000000000000000]})")),
            id("digest:/a", with_body(R"({"a":[2.000000000000000000]})")));
}

// What ledgers have from the time when numbers were read as doubles.
TEST(IdRule, digest_of_ordinary_numbers_stays_the_same) {
  EXPECT_EQ(id("digest:/a", with_body(R"({"a":{"n":[0,-7,18446744073709551615,)"
                                      R"(123456789012345678901234567890,1.5,-0.25,100.0,1e2,)"
                                      R"(0.00001,2.5e-7,3.141592653589793]}})")),
            "4afe5d7c381fa31324178d1c4254e181");
}

TEST(IdRule, number_with_a_huge_exponent_is_refused) {
  for (const char* rule : {"json:/id", "json:/id,/id", "digest:/id"})
    for (const char* body : {R"({"id":1e999999999})", R"({"id":-1e-99999999999999999999})"}) {
      expect_no_id(rule, with_body(body));
      EXPECT_NE(error(rule, with_body(body)).text.find("exponent"), std::string::npos);
    }
  EXPECT_EQ(id("json:/id", with_body(R"({"id":7,"x":1e999999999})")), "7") << "nobody asks for it";
}

// Half of a body may say something else than the whole.
TEST(IdRule, body_that_is_not_json_anywhere_has_no_id) {
  for (const char* body :
       {R"({"id":"a"}{"id":"b"})", R"({"id":"a"},{"id":"b"})", R"({"id":"a"}})",
        R"({"id":"a","w":tru})", R"({"id":"a","w":NaN})", R"({"id":"a","w":01})",
        R"({"id":"a","w":"\x"})", R"({"id":"a","\x":1})", R"({"id":"a","w":1.})",
        R"({"id":"a","w":"\u12g4"})", R"({"id":"a","w":["b":1]})", R"({"id":"a","w":[1,]})",
        R"({"id":"a",})", R"({"id":"a","w":{"b"}})", "{\"id\":\"a\",\"w\":\"\x01\"}",
        "{\"id\":\"a\",\"w\":\"\xff\"}", R"({"id":"a"} x)", R"({"id":"a"}"")"})
    for (const char* rule : {"json:/id", "digest:/id"}) {
      expect_no_id(rule, with_body(body));
      EXPECT_NE(error(rule, with_body(body)).text.find("not JSON"), std::string::npos) << body;
    }
  for (const char* body :
       {" {\"id\":\"a\"}\n", R"({"id":"a","w":[true,false,null,-0.5e+7,"\"\\\/\b\f\n\r\t\u00Fe"]})",
        R"({"id":"a","w":"\ud800","\"":{},"e":[[],{}]})"})
    EXPECT_EQ(id("json:/id", with_body(body)), "a") << body;
}

TEST(IdRule, H14_a_missing_or_empty_id_is_an_error_that_names_the_rule) {
  for (const char* body :
       {"", " ", "{", "[]", "{}", "null", "\"id\"", "7", "no json", R"({"id":null})",
        R"({"id":""})", R"({"id":{}})", R"({"id":[1]})", R"({"idx":1})", R"({"id":tru})",
        R"({"id":12x})", R"({"id":"a)", "{\"id\":\"\xff\"}"})
    expect_no_id("json:/id", with_body(body));
  expect_no_id("json:/id,/line", with_body(R"({"id":1})"));
  expect_no_id("json:/id,/line", with_body(R"({"id":1,"line":""})"));
  expect_no_id("digest:", with_body(""));
  expect_no_id("digest:/a", with_body(R"({"b":1})"));
  expect_no_id("cloudevents", with_body(R"({"id":"1","source":"shop"})"));
}

TEST(IdRule, an_over_long_id_is_refused_not_cut) {
  Delivery delivery = with_body("");
  const std::string longest(id_bytes_max, 'x');
  delivery.key = longest;
  EXPECT_EQ(id("key", delivery), longest);
  const std::string longer(id_bytes_max + 1, 'x');
  delivery.key = longer;
  EXPECT_EQ(error("key", delivery).tag, "long_id");
  EXPECT_EQ(error("key", delivery).remedy, Remedy::park);
}

TEST(IdRule, cloudevents_come_in_headers_or_in_the_body) {
  for (const std::string prefix : {"ce-", "ce_", "cloudEvents:", "cloudEvents_"}) {
    Delivery delivery = with_body("not looked at");
    const std::string id_name = prefix + "id", source_name = prefix + "source";
    std::vector<HeaderView> headers{{id_name, "7"}, {source_name, "/shop"}};
    delivery.headers = headers;
    EXPECT_EQ(id("cloudevents", delivery), "/shop|7");
    headers.pop_back();
    delivery.headers = headers;
    expect_no_id("cloudevents", delivery);
  }
  Delivery delivery = with_body("not looked at");
  const std::vector<HeaderView> bare{{"id", "7"}, {"source", "/shop"}, {"specversion", "1.0"}};
  delivery.headers = bare;
  EXPECT_EQ(id("cloudevents", delivery), "/shop|7") << "as in MQTT";
  delivery.headers = std::span(bare).first(2);
  expect_no_id("cloudevents", delivery);
  EXPECT_EQ(id("cloudevents",
               with_body(R"({"specversion":"1.0","id":"7","source":"/shop","data":{"id":1}})")),
            "/shop|7");
}

TEST(IdRule, coordinates_are_partition_and_offset) {
  EXPECT_EQ(id("coordinates", with_body("")), "orders-0|41");
}

TEST(IdRule, a_digest_covers_the_fields_and_not_their_spelling) {
  const std::string digest = id("digest:/a,/b", with_body(R"({"a":{"x":1,"y":[2,3]},"b":"t"})"));
  EXPECT_EQ(digest.size(), 32u);
  EXPECT_EQ(digest, id("digest:/a,/b",
                       with_body(R"({ "b":"\u0074", "z":9, "a": {"y":[2.0, 3], "x":1} })")));
  EXPECT_NE(digest, id("digest:/b,/a", with_body(R"({"a":{"x":1,"y":[2,3]},"b":"t"})")));
  EXPECT_NE(digest, id("digest:/a,/b", with_body(R"({"a":{"x":1,"y":[3,2]},"b":"t"})")));
  EXPECT_NE(id("digest:/a", with_body(R"({"a":1})")), id("digest:/a", with_body(R"({"a":"1"})")));
  EXPECT_NE(id("digest:", with_body("a")), id("digest:", with_body("a ")));
}

TEST(IdRule, a_deeply_nested_body_is_refused_and_does_no_harm) {
  const std::string deep = R"({"a":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  expect_no_id("digest:/a", with_body(deep));
  EXPECT_EQ(id("digest:/a", with_body(R"({"a":[[1]]})")).size(), 32u);
}

// Other readers take the last of two members, or the first: an id must not depend on that.
TEST(IdRule, member_that_stands_twice_on_the_way_to_an_id_is_refused) {
  for (const char* body :
       {R"({"id":"a","id":"b"})", R"({"id":"a","x":1,"id":"a"})", R"({"id":"a","\u0069d":"b"})"}) {
    expect_no_id("json:/id", with_body(body));
    EXPECT_NE(error("json:/id", with_body(body)).text.find("twice"), std::string::npos);
    expect_no_id("digest:/id", with_body(body));
  }
  expect_no_id("json:/o/id", with_body(R"({"o":{"id":1},"o":{"id":1}})"));
  expect_no_id("json:/o/id", with_body(R"({"o":{"id":1,"id":2}})"));
  expect_no_id("json:/l/1/id", with_body(R"({"l":[{},{"id":1,"id":2}]})"));
  expect_no_id("digest:/o", with_body(R"({"o":{"a":[{"b":1,"b":2}]}})"));
  EXPECT_EQ(id("json:/id", with_body(R"({"x":1,"id":"a","x":2,"o":{"id":"b"}})")), "a")
      << "nobody looks for the others";
  EXPECT_EQ(id("json:/id", with_body(R"({"\u0069d":"a"})")), "a") << "it has this name";
  EXPECT_EQ(id("json:/a~1b/0", with_body(R"({"a/b":["c"]})")), "c");
}

TEST(IdRule, different_pairs_of_fields_are_different_ids) {
  EXPECT_TRUE(rc::check([] {
    const auto text =
        rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ae|:"))));
    const std::string a = *text, b = *text, c = *text, d = *text;
    const auto of = [](const std::string& x, const std::string& y) {
      const std::string body = "{\"x\":\"" + x + "\",\"y\":\"" + y + "\"}";
      return IdRule::parse("json:/x,/y").value().id_of(with_body(body)).value();
    };
    RC_ASSERT((a == c && b == d) == (of(a, b) == of(c, d)));
  }));
}

TEST(BornRule, finds_the_time_in_message_or_id) {
  Delivery delivery = with_body("");
  delivery.timestamp_ms = 1234;
  EXPECT_EQ(born_ms_of(BornRule::timestamp, delivery, "x").value(), 1234);
  delivery.timestamp_ms = -1;
  EXPECT_EQ(born_ms_of(BornRule::timestamp, delivery, "x").value(), 0);
  EXPECT_EQ(born_ms_of(BornRule::uuid7, delivery, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f").value(),
            1645557742000);  // the example of RFC 9562
  EXPECT_EQ(born_ms_of(BornRule::snowflake, delivery, "0000000000004194304").value(),
            1704067200001);
  for (const char* bad :
       {"", "x", "017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f",
        "017f22e2x79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g"})
    EXPECT_EQ(born_ms_of(BornRule::uuid7, delivery, bad).error().tag, "no_time") << bad;
  for (const char* bad :
       {"", "x", "-1", "1 ", " 1", "+1", "99999999999999999999", "00000000000000000000"})
    EXPECT_EQ(born_ms_of(BornRule::snowflake, delivery, bad).error().tag, "no_time") << bad;
}

}  // namespace
}  // namespace once
