// SPDX-License-Identifier: Apache-2.0
#include "open/url.h"

#include <gtest/gtest.h>

#include <array>

namespace once {
namespace {

using namespace std::string_view_literals;

LogAddress address_of(std::string_view text) { return log_address_of(*parse_url(text)).value(); }

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

TEST(Url, log_address_is_directory_and_topic) {
  EXPECT_EQ(address_of("file:data/orders"), (LogAddress{"data", "orders"}));
  EXPECT_EQ(address_of("file:/orders"), (LogAddress{"/", "orders"}));
  EXPECT_EQ(address_of("file:orders"), (LogAddress{".", "orders"}));
  EXPECT_EQ(address_of("file:/a//b/orders"), (LogAddress{"/a//b", "orders"}));
}

TEST(Url, log_address_without_a_topic_is_refused) {
  for (const auto text : {"file:"sv, "file:/"sv, "file:data/"sv, "file:data/.."sv, "file:."sv}) {
    const auto address = log_address_of(*parse_url(text));
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().tag, "url");
    EXPECT_NE(address.error().text.find("file:"), std::string::npos);
  }
}

}  // namespace
}  // namespace once
