// SPDX-License-Identifier: Apache-2.0
#include "store/redis/slot.h"

#include <gtest/gtest.h>

namespace once {
namespace {

// From the specification of Redis Cluster, and as CLUSTER KEYSLOT of Redis 7.0 answers.
TEST(RedisSlot, is_that_of_the_server) {
  EXPECT_EQ(crc16("123456789"), 0x31c3);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("once"), slot_of("{once}/ledger/shop"));
}

TEST(RedisSlot, of_a_key_with_a_tag_is_that_of_the_tag) {
  EXPECT_EQ(slot_of("{user}.a"), slot_of("{user}.b"));
  EXPECT_EQ(slot_of("x{user}y{other}"), slot_of("user"));
  EXPECT_EQ(slot_of("{}foo{bar}"), slot_of(std::string_view("{}foo{bar}")));
  EXPECT_NE(slot_of("{}foo{bar}"), slot_of("bar"));  // an empty tag is none
  EXPECT_EQ(slot_of("{{a}"), slot_of("{a"));         // up to the first closing one
  EXPECT_NE(slot_of("{open"), slot_of("open"));
}

}  // namespace
}  // namespace once
