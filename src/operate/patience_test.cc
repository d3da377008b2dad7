// SPDX-License-Identifier: Apache-2.0
#include "operate/patience.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace once::operate {
namespace {

class PatienceTest : public ::testing::Test {
 protected:
  Patience patience(std::optional<std::int64_t> wait_s) {
    return Patience(wait_s, [this](const Event& event) { told_.push_back(event.text); });
  }
  // Fails so many times, then works.
  auto after(int failures, Error error) {
    return [this, failures, error = std::move(error)]() -> Result<int> {
      if (attempts_++ < failures) return fail(error);
      return 7;
    };
  }
  static Error away() { return {Remedy::retry, "away", "db: cannot connect", std::nullopt}; }

  std::vector<std::string> told_;
  int attempts_ = 0;
};

TEST_F(PatienceTest, what_is_away_is_waited_for_and_told_once_and_when_it_is_back) {
  auto waits = patience(std::nullopt);
  EXPECT_EQ(waits.until_there(the_store, after(3, away())).value(), 7);
  EXPECT_EQ(attempts_, 4);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[0], "waiting for the store: db: cannot connect");
  EXPECT_TRUE(told_[1].starts_with("the store is back after ")) << told_[1];
}

TEST_F(PatienceTest, every_other_error_is_answered_at_once) {
  auto waits = patience(std::nullopt);
  const auto denied =
      waits.until_there(the_store, after(1, {Remedy::stop, "denied", "no", std::nullopt}));
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().tag, "denied");
  EXPECT_EQ(attempts_, 1);
  EXPECT_TRUE(told_.empty());
}

TEST_F(PatienceTest, no_patience_means_one_attempt_without_a_word) {
  auto waits = patience(0);
  const auto gone = waits.until_there(the_store, after(1, away()));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().remedy, Remedy::retry);
  EXPECT_EQ(attempts_, 1);
  EXPECT_TRUE(told_.empty());
}

TEST_F(PatienceTest, the_limit_is_for_everything_together) {
  const auto began = std::chrono::steady_clock::now();
  auto waits = patience(1);
  EXPECT_TRUE(waits.until_there(the_source, after(2, away())));
  EXPECT_FALSE(waits.until_there(the_store, after(1000, away())));
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, std::chrono::seconds(1));
  EXPECT_LT(took, std::chrono::seconds(5));
}

}  // namespace
}  // namespace once::operate
