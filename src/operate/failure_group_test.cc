// SPDX-License-Identifier: Apache-2.0
#include "operate/failure_group.h"

#include <gtest/gtest.h>

namespace once::operate {
namespace {

TEST(FailureGroups, fall_together_and_keep_the_number_of_their_first_message) {
  const std::vector<ParkedSummary> parked{{3, 0, "no account \"ann\"", "a", 0},
                                          {5, 0, "sold out", "b", 0},
                                          {6, 0, "no account \"ben\"", "c", 0},
                                          {9, 0, "sold out", "d", 0}};
  const auto groups = failure_groups(parked);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].number, 3);
  EXPECT_EQ(groups[0].reason, "no account \"…\"");
  EXPECT_EQ(groups[0].members, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(groups[1].number, 5);
  EXPECT_EQ(groups[1].members, (std::vector<std::size_t>{1, 3}));
  EXPECT_TRUE(failure_groups({}).empty());
}

}  // namespace
}  // namespace once::operate
