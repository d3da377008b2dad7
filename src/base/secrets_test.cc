// SPDX-License-Identifier: Apache-2.0
#include "base/secrets.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "base/secrets_testing.h"
#include "base/url.h"

namespace once {
namespace {

std::string redacted(std::string_view address, std::string_view text) {
  Secrets secrets;
  secrets.learn(address);
  return secrets.redacted(text);
}

TEST(Secrets, password_is_taken_out_as_it_was_written_and_as_it_is_meant) {
  const std::string_view url = "kafka://me:s%2Fcret@a/t";
  EXPECT_EQ(redacted(url, "cannot open kafka://me:s%2Fcret@a/t"), "cannot open kafka://me:***@a/t");
  EXPECT_EQ(redacted(url, "login s/cret, login s%2Fcret"), "login ***, login ***");
}

TEST(Secrets, parameters_with_the_name_of_a_secret_are_secret_and_others_are_not) {
  const std::string_view url =
      "kafka://a/t?sasl.password=hunter%322&group=points&ssl.key.password=k3y!";
  EXPECT_EQ(redacted(url, "hunter22 k3y! points"), "*** *** points");
  EXPECT_EQ(redacted("postgresql://h/d?pass%77ord=geheim", "geheim"), "***");
}

TEST(Secrets, a_password_with_the_name_of_a_secret_makes_no_parameter_secret) {
  const std::string_view url = "postgresql://me:my-secret@db/shop?sslmode=bogus";
  EXPECT_EQ(redacted(url, "invalid sslmode value: \"bogus\""), "invalid sslmode value: \"bogus\"");
}

TEST(Secrets, names_and_values_of_libpq_are_understood) {
  EXPECT_EQ(redacted("host=db password=geheim user=me", "FATAL: geheim of me at db"),
            "FATAL: *** of me at db");
  EXPECT_EQ(redacted("password='ge he\\'im' host=db", "no ge he'im"), "no ***");
  EXPECT_EQ(redacted("host=db password=geheim", "\"host=db password=geheim\" is no URL"),
            "\"***\" is no URL");
}

TEST(Secrets, address_that_can_be_read_in_two_ways_is_secret_in_both) {
  const std::string_view url = "mysql://me:pa55/w0rd@x?y@host/db";
  EXPECT_EQ(redacted(url, "pa55/w0rd"), "***");
  EXPECT_EQ(redacted(url, "pa55/w0rd@x?y"), "***");
}

TEST(Secrets, password_that_is_also_a_name_is_only_hidden_where_it_is_the_password) {
  EXPECT_EQ(redacted("postgresql://once:once@db/once", "once:once@db has no database once"),
            "once:***@db has no database once");
  EXPECT_EQ(redacted("redis://me:ab@db/0", "about me:ab@db"), "about me:***@db");
}

TEST(Secrets, values_are_replaced_by_their_names_and_the_longest_goes_first) {
  Secrets secrets;
  secrets.learn_value("/home/me", "${DIR}");
  secrets.learn_value("/home/me/hunter2", "${KEY}");
  secrets.learn_value("x", "${SHORT}");
  EXPECT_EQ(secrets.redacted("no /home/me/hunter2 in /home/me, x"), "no ${KEY} in ${DIR}, x");
}

TEST(Secrets, urls_that_nobody_told_about_lose_their_credentials) {
  EXPECT_EQ(without_credentials("run/points/kafka://me:pw@h/t waits, \"redis://tok@h\" too"),
            "run/points/kafka://me:***@h/t waits, \"redis://***@h\" too");
  EXPECT_EQ(without_credentials("x postgresql://h/d?user=me&password=pw"),
            "x postgresql://h/d?...");
  for (const std::string_view text :
       {"see https://a.example/@me?q=1", "://", "a://", "no URL @ all"})
    EXPECT_EQ(without_credentials(text), text);
}

TEST(Secrets, no_error_and_no_shown_url_holds_any_part_of_a_generated_password) {
  EXPECT_TRUE(rc::check([] {
    const testing::Password password = testing::make_password();
    const std::string address = testing::make_address(password.text);
    std::string shown = shown_url(address);
    if (const auto url = parse_url(address); !url) shown += "\n" + url.error().text;
    for (const std::string& word : password.words)
      if (shown.find(word) != std::string::npos)
        RC_FAIL("\"" + address + "\" is shown as\n" + shown);
  }));
}

TEST(Secrets, address_that_is_repeated_in_a_text_loses_every_generated_password) {
  EXPECT_TRUE(rc::check([] {
    const testing::Password password = testing::make_password();
    const std::string address = testing::make_address(password.text);
    const std::string text = redacted(address, "cannot open \"" + address + "\": no answer");
    for (const std::string& word : password.words)
      if (text.find(word) != std::string::npos) RC_FAIL(text);
  }));
}

TEST(Secrets, password_of_a_url_that_can_be_opened_is_taken_out_of_any_text) {
  EXPECT_TRUE(rc::check([] {
    const testing::Password password = testing::make_password();
    const auto url = parse_url("kafka://me:" + password.text + "@host/orders");
    RC_PRE(url.has_value());
    const std::string text =
        redacted("kafka://me:" + password.text + "@host/orders",
                 "login me/" + url->password + " failed (" + password.text + ")");
    RC_ASSERT(text == "login me/*** failed (***)");
  }));
}

}  // namespace
}  // namespace once
