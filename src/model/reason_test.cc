// SPDX-License-Identifier: Apache-2.0
#include "model/reason.h"

#include <gtest/gtest.h>

namespace once {
namespace {

TEST(Masked, numbers_and_quotations_do_not_tell_failures_apart) {
  EXPECT_EQ(masked("gave up after 5 attempts: no account \"ann\""),
            "gave up after # attempts: no account \"…\"");
  EXPECT_EQ(masked("no account 'ben' for order-000095"), "no account \"…\" for order-#");
  EXPECT_EQ(masked("12.50 is more than 3"), "#.# is more than #");
  EXPECT_EQ(masked("id 0190f3c2-7b1e-7abc-8def-0123456789ab is bad"), "id # is bad");
  EXPECT_EQ(masked("digest a3f9c2d1e5 differs"), "digest # differs");
  EXPECT_EQ(masked("2026-11-15T22:40:52Z is over"), "#:#:# is over");
}

TEST(Masked, words_stay_as_they_are) {
  for (const char* text : {"", "no such account", "it's the driver's fault", "decade", "café fermé",
                           "an \"unfinished", "'", "\""})
    EXPECT_EQ(masked(text), text);
  EXPECT_EQ(masked("the driver's 'key's value' is gone"), "the driver's \"…\" is gone");
}

}  // namespace
}  // namespace once
