// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/secrets_testing.h"

namespace once::cli {
namespace {

// What a store or an error says, however deep, loses every part of a password; what belongs to a
// message stays as it is.
TEST(Output, json_loses_every_generated_password_and_keeps_messages) {
  EXPECT_TRUE(rc::check([] {
    const auto password = once::testing::make_password();
    const std::string address = once::testing::make_address(password.text);
    Secrets secrets;
    secrets.learn(address);
    const std::string said = "cannot open \"" + address + "\": no answer";
    const Json message = {{"id", address},
                          {"key", address},
                          {"headers", {{{"name", "from"}, {"value", address}}}},
                          {"body", said}};
    const Json made = redacted({{"store", address},
                                {"list", {said, {{"reason", said}}}},
                                {"number", 7},
                                {"none", nullptr},
                                {"message", message}},
                               secrets);
    RC_ASSERT(made["message"] == message);
    RC_ASSERT(made["number"] == 7);
    RC_ASSERT(made["none"].is_null());
    Json rest = made;
    rest.erase("message");
    for (const std::string& word : password.words)
      if (rest.dump().find(word) != std::string::npos) RC_FAIL(rest.dump());
  }));
}

// Rows of a store that an earlier version wrote.
TEST(Output, json_loses_credentials_that_nobody_told_about) {
  EXPECT_EQ(redacted({{"destination", "run/points/kafka://me:geheim@h/t"}, {"waiting", 2}}, {}),
            (Json{{"destination", "run/points/kafka://me:***@h/t"}, {"waiting", 2}}));
}

}  // namespace
}  // namespace once::cli
