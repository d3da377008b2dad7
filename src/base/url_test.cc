// SPDX-License-Identifier: Apache-2.0
#include "base/url.h"

#include <gtest/gtest.h>

#include <array>

namespace once {
namespace {

using namespace std::string_view_literals;

TEST(Url, is_taken_apart_into_scheme_path_and_parameters) {
  const Url url = parse_url("file:data/orders?end=stop&note=a%26b").value();
  EXPECT_EQ(url.scheme, "file");
  EXPECT_EQ(url.path, "data/orders");
  EXPECT_EQ(*url.parameter("end"), "stop");
  EXPECT_EQ(*url.parameter("note"), "a&b");
  EXPECT_EQ(url.parameter("other"), nullptr);
}

TEST(Url, scheme_is_read_in_any_case) { EXPECT_EQ(parse_url("FILE:a/b")->scheme, "file"); }

TEST(Url, three_slashes_and_one_name_the_same_absolute_path) {
  EXPECT_EQ(parse_url("file:///data/orders")->path, "/data/orders");
  EXPECT_EQ(parse_url("file:/data/orders")->path, "/data/orders");
  EXPECT_EQ(parse_url("file://localhost/data/orders")->path, "/data/orders");
}

TEST(Url, of_another_host_is_refused_and_names_it) {
  const auto url = parse_url("file://data/orders");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().tag, "url");
  EXPECT_NE(url.error().text.find("host \"data\""), std::string::npos) << url.error().text;
}

TEST(Url, without_a_scheme_gets_a_guess) {
  for (const auto text : {"data/orders"sv, ""sv, "./a:b/c"sv, "1file:x"sv}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_NE(url.error().text.find("did you mean file:"), std::string::npos) << url.error().text;
  }
}

TEST(Url, without_a_scheme_gets_a_guess_of_what_is_usual_there) {
  EXPECT_NE(parse_url("data/a.db", "sqlite").error().text.find("did you mean sqlite:data/a.db?"),
            std::string::npos);
  EXPECT_NE(parse_url("", "sqlite").error().text.find("did you mean sqlite:PATH?"),
            std::string::npos);
}

TEST(Url, percent_signs_are_decoded) { EXPECT_EQ(parse_url("file:a%3Fb/c%25")->path, "a?b/c%"); }

TEST(Url, broken_percent_signs_and_nul_bytes_are_refused) {
  for (const auto text : {"file:a%"sv, "file:a%4"sv, "file:a%zz"sv, "file:a%00b"sv})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(Url, parameters_must_have_a_name_a_value_and_come_once) {
  for (const auto text : {"file:a/b?end"sv, "file:a/b?=stop"sv, "file:a/b?end=stop&end=stop"sv})
    EXPECT_FALSE(parse_url(text)) << text;
  EXPECT_EQ(*parse_url("file:a/b?end=")->parameter("end"), "");
}

TEST(Url, unknown_scheme_is_answered_with_the_nearest_and_all_known) {
  constexpr std::array known{"file"sv, "kafka"sv, "sqlite"sv};
  const auto wrong = require_scheme(*parse_url("fiel:a/b"), known, "source");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().text,
            "no source has the scheme \"fiel:\", did you mean \"file:\"?; known: file:, kafka:, "
            "sqlite:");
  const auto strange = require_scheme(*parse_url("zzzzzzzzzz:a"), known, "source");
  EXPECT_EQ(strange.error().text.find("did you mean"), std::string::npos) << strange.error().text;
  EXPECT_TRUE(require_scheme(*parse_url("kafka:x"), known, "source"));
}

TEST(Url, unknown_parameter_is_answered_with_the_known_ones) {
  constexpr std::array known{"end"sv};
  const auto wrong = require_parameters(*parse_url("file:a/b?stop=end"), known);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text.find("known: end"), std::string::npos) << wrong.error().text;
  EXPECT_FALSE(require_parameters(*parse_url("sqlite:x?mode=ro"), {}));
  EXPECT_TRUE(require_parameters(*parse_url("file:a/b?end=stop"), known));
}

TEST(Url, of_servers_has_hosts_a_user_and_a_password) {
  const Url url = parse_url("kafka://me:s%40cret@a:9092,b:9093/orders?group=x").value();
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "s@cret");
  EXPECT_EQ(url.hosts, "a:9092,b:9093");
  EXPECT_EQ(url.path, "orders");
  EXPECT_EQ(*url.parameter("group"), "x");
  EXPECT_EQ(parse_url("kafka://a:9092")->path, "");
}

TEST(Url, servers_have_a_name_and_a_port) {
  const auto of = [](std::string_view text) { return endpoints_of(*parse_url(text), 7); };
  EXPECT_EQ(of("x://a:1,b,:3/p"), (std::vector<Endpoint>{{"a", 1}, {"b", 7}, {"localhost", 3}}));
  EXPECT_EQ(of("x://"), (std::vector<Endpoint>{{"localhost", 7}}));
  for (const auto text : {"x://a:port"sv, "x://a:0"sv, "x://a:65536"sv, "x://a:1x"sv})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(Url, ipv6_addresses_stand_in_brackets) {
  const auto of = [](std::string_view text) { return endpoints_of(*parse_url(text), 7); };
  EXPECT_EQ(of("x://[::1]:9,[fe80::1%25lo],b:2/p"),
            (std::vector<Endpoint>{{"::1", 9}, {"fe80::1%lo", 7}, {"b", 2}}));
  EXPECT_EQ(of("x://me:pw@[::1]/p"), (std::vector<Endpoint>{{"::1", 7}}));
  EXPECT_EQ(shown_endpoint({"::1", 9}), "[::1]:9");
  EXPECT_EQ(shown_endpoint({"db", 9}), "db:9");
  for (const auto text : {"x://[::1"sv, "x://::1"sv, "x://::1:9"sv, "x://[]"sv, "x://[::1]9"sv,
                          "x://[::1]:x"sv, "x://a,[::1"sv})
    EXPECT_FALSE(parse_url(text)) << text;
}

TEST(Url, at_sign_that_may_belong_to_a_password_is_refused_and_nothing_of_it_is_shown) {
  for (const auto text :
       {"redis://me:Zq7/Xw9@a/0"sv, "redis://me:Zq7?Xw9@a/0"sv, "redis://me:Zq7?Xw9=1@a/0"sv,
        "redis://me:Zq7@Xw9@a/0"sv, "redis://me:12/Xw9@a/0"sv, "redis://Zq7?Xw9@a"sv,
        "redis://a/0?password=Zq7@Xw9"sv}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_NE(url.error().text.find("%40"), std::string::npos) << url.error().text;
    EXPECT_EQ(url.error().text.find("Zq7"), std::string::npos) << url.error().text;
    EXPECT_EQ(url.error().text.find("Xw9"), std::string::npos) << url.error().text;
  }
  EXPECT_EQ(parse_url("redis://me:a%2Fb%3Fc%40d@h/0")->password, "a/b?c@d");
  EXPECT_EQ(parse_url("file:data/or@ders")->path, "data/or@ders");
}

TEST(Url, is_shown_without_secrets) {
  EXPECT_EQ(shown_url("kafka://me:secret@a:9092/orders?sasl.password=secret"),
            "kafka://me:***@a:9092/orders?...");
  EXPECT_EQ(shown_url("kafka://a:9092/orders"), "kafka://a:9092/orders");
  EXPECT_EQ(shown_url("kafka://[::1]:9092,b/orders"), "kafka://[::1]:9092,b/orders");
  EXPECT_EQ(shown_url("file:data/or@ders"), "file:data/or@ders");
  EXPECT_EQ(shown_url("file:data/orders?x=y"), "file:data/orders?...");
  EXPECT_EQ(shown_url("memory:"), "memory:");
  EXPECT_EQ(shown_url("data/orders"), "data/orders");
  for (const auto text : {"kafka://me:sec%ret@a/t"sv, "kafka://me:secret@a/t?x"sv}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().text.find("secret"), std::string::npos) << url.error().text;
    EXPECT_EQ(url.error().text.find("sec%"), std::string::npos) << url.error().text;
  }
}

TEST(Url, nothing_is_shown_of_what_cannot_be_understood) {
  for (const auto text :
       {"host=db password=secret"sv, "me:secret@host/db"sv, "//me:secret@host/db"sv,
        "secret@host"sv, "mysql://me:secret"sv, "mysql://me:secret/db"sv,
        "mysql://me:99999/secret"sv, "postgresql://me:secret@[::1/db"sv,
        "postgresql://[secret/db"sv, "file://me:secret@h/x"sv})
    EXPECT_EQ(shown_url(text).find("secret"), std::string::npos) << shown_url(text);
}

}  // namespace
}  // namespace once
