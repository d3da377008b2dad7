// SPDX-License-Identifier: Apache-2.0
#include "runtime/parked_share.h"

#include <gtest/gtest.h>

#include <string>

namespace once {
namespace {

class ParkedShareTest : public ::testing::Test {
 protected:
  bool exceeded() const { return share_.exceeded("shop").has_value(); }
  void park(int count, const std::string& reason = "no such account") {
    for (int i = 0; i < count; ++i) share_.parked(reason);
  }

  ParkedShare share_{ParkedLimit{.percent = 50, .window = 1000, .messages_min = 100}};
};

TEST_F(ParkedShareTest, a_few_messages_say_nothing) {
  park(99);
  EXPECT_FALSE(exceeded());
  park(1);
  EXPECT_TRUE(exceeded());
}

TEST_F(ParkedShareTest, at_the_end_fewer_messages_are_enough_if_all_were_parked) {
  EXPECT_FALSE(share_.exceeded_at_end("shop")) << "there were none";
  park(19);
  EXPECT_FALSE(share_.exceeded_at_end("shop")) << "a handful of bad ones";
  park(1);
  EXPECT_TRUE(share_.exceeded_at_end("shop"));
  EXPECT_FALSE(exceeded());
  share_.settled(1);
  EXPECT_FALSE(share_.exceeded_at_end("shop"));
  ParkedShare none{std::nullopt};
  none.parked("no such account");
  EXPECT_FALSE(none.exceeded_at_end("shop"));
}

TEST_F(ParkedShareTest, one_poison_message_in_ten_does_not_stop_a_topic) {
  for (int i = 0; i < 1000; ++i) {
    share_.settled(9);
    park(1);
    ASSERT_FALSE(exceeded()) << i;
  }
}

TEST_F(ParkedShareTest, the_limit_is_reached_at_its_very_share) {
  share_.settled(100);
  park(99);
  EXPECT_FALSE(exceeded());
  park(1);
  EXPECT_TRUE(exceeded());
}

TEST_F(ParkedShareTest, only_the_last_messages_count) {
  share_.settled(1'000'000);
  park(499);
  EXPECT_FALSE(exceeded());
  park(1);
  EXPECT_TRUE(exceeded());
  share_.settled(1);  // the oldest of the window was no parked one either
  EXPECT_TRUE(exceeded());
  share_.settled(500);
  EXPECT_FALSE(exceeded());
  share_.settled(1000);
  park(499);
  EXPECT_FALSE(exceeded());
}

TEST_F(ParkedShareTest, the_error_names_the_most_frequent_reason_and_the_command) {
  share_.settled(20);
  for (int i = 0; i < 60; ++i) park(1, "account \"a" + std::to_string(i) + "\" does not exist");
  park(25, "the amount is negative");
  const auto error = share_.exceeded("shop");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->remedy, Remedy::park);
  EXPECT_EQ(error->tag, "parked");
  EXPECT_NE(error->text.find("85 of the last 105 messages"), std::string::npos) << error->text;
  EXPECT_NE(error->text.find("(60 times): account \"a59\" does not exist"), std::string::npos);
  EXPECT_NE(error->text.find("`once park ls --scope shop`"), std::string::npos);
}

TEST_F(ParkedShareTest, reasons_that_left_the_window_are_forgotten) {
  for (int i = 0; i < 5'000; ++i) {
    std::string reason = "reason ";
    for (int rest = i; rest > 0; rest /= 26) reason += static_cast<char>('a' + rest % 26);
    park(1, reason);
  }
  share_.settled(1000);
  park(1000, "the last");
  EXPECT_NE(share_.exceeded("shop")->text.find("(1000 times): the last"), std::string::npos);
}

TEST(ParkedShareWithoutLimit, anything_may_be_parked) {
  ParkedShare share(std::nullopt);
  for (int i = 0; i < 10'000; ++i) share.parked("no");
  EXPECT_FALSE(share.exceeded("shop"));
}

}  // namespace
}  // namespace once
