// SPDX-License-Identifier: Apache-2.0
#include "runtime/lag.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace once {
namespace {

class LagTest : public ::testing::Test {
 protected:
  std::string figures() {
    lag_.update();
    return std::to_string(lag_.messages()) + " of " + std::to_string(lag_.partitions());
  }
  Lag lag_;
};

TEST_F(LagTest, counts_what_is_there_and_not_handled) {
  EXPECT_EQ(figures(), "-1 of 0");
  lag_.own("a/0", -1);
  EXPECT_EQ(figures(), "-1 of 0") << "nobody knows where it ends";
  lag_.ends_at("a/0", 10);
  EXPECT_EQ(figures(), "10 of 1");
  lag_.delivered("a/0", 4);
  EXPECT_EQ(figures(), "10 of 1") << "delivered is not handled";
  lag_.handled("a/0", 4);
  EXPECT_EQ(figures(), "6 of 1");
  lag_.disown("a/0");
  lag_.handled("a/0", 5);
  EXPECT_EQ(figures(), "-1 of 0");
}

// The end of a transaction has an offset in Kafka, and is no message.
TEST_F(LagTest, what_turned_out_to_be_no_message_is_not_counted_again) {
  lag_.own("a/0", 3);
  const std::vector<PartitionEnd> ends{{"a/0", 4}};
  lag_.look(ends, nullptr);
  EXPECT_EQ(figures(), "1 of 1");
  lag_.drained();
  EXPECT_EQ(figures(), "0 of 1");
  lag_.look(ends, nullptr);
  EXPECT_EQ(figures(), "0 of 1");
  lag_.look(std::vector<PartitionEnd>{{"a/0", 6}}, nullptr);
  EXPECT_EQ(figures(), "3 of 1");
}

TEST_F(LagTest, partitions_of_others_count_by_what_the_store_has) {
  lag_.own("a/0", 2);
  const std::vector<PartitionEnd> ends{{"a/0", 2}, {"a/1", 9}, {"a/2", 5}};
  ScopeRecord stored;
  stored.partitions.push_back({.partition = "a/1", .position = {.offset = 7}});
  lag_.look(ends, &stored);
  EXPECT_EQ(figures(), "7 of 3") << "nothing is handled of a/2";
  lag_.own("a/1", 7);
  EXPECT_EQ(figures(), "5 of 2") << "it is ours, and nobody has told where it ends";
  lag_.look(ends, nullptr);
  EXPECT_EQ(figures(), "2 of 2") << "without the store nothing is known of others";
}

}  // namespace
}  // namespace once
