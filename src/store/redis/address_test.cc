// SPDX-License-Identifier: Apache-2.0
#include "store/redis/address.h"

#include <gtest/gtest.h>

namespace once {
namespace {

TEST(RedisAddress, says_who_where_and_what) {
  const auto address = RedisAddress::parse(
      "redis://an%40n:s%3Acret@db.example:6380,other/3?durability=process&prefix=shop&shards=16&"
      "keys=%7Bshop%7D:&connect-ms=100&answer-ms=200");
  ASSERT_TRUE(address) << address.error().text;
  EXPECT_EQ(address->user, "an@n");
  EXPECT_EQ(address->password, "s:cret");
  EXPECT_EQ(address->hosts, (std::vector<Endpoint>{{"db.example", 6380}, {"other", 6379}}));
  EXPECT_EQ(address->database, 3u);
  EXPECT_EQ(address->durability, StoreTraits::Durability::process);
  EXPECT_EQ(address->prefix, "shop");
  EXPECT_EQ(address->keys, "{shop}:");
  EXPECT_EQ(address->shards, 16u);
  EXPECT_EQ(address->connect_ms, 100);
  EXPECT_EQ(address->answer_ms, 200);
  EXPECT_EQ(address->where(), "redis://db.example:6380,other:6379/3");
}

TEST(RedisAddress, what_is_left_out_is_the_safest) {
  const auto address = RedisAddress::parse("redis://:hush@");
  ASSERT_TRUE(address) << address.error().text;
  EXPECT_EQ(address->user, "");
  EXPECT_EQ(address->password, "hush");
  EXPECT_EQ(address->hosts, (std::vector<Endpoint>{{"localhost", 6379}}));
  EXPECT_EQ(address->durability, StoreTraits::Durability::power);
  EXPECT_TRUE(address->checked);
  EXPECT_EQ(address->shards, 1u);
}

TEST(RedisAddress, who_is_not_checked_says_by_name_what_is_kept) {
  EXPECT_FALSE(RedisAddress::parse("redis://h?unchecked=yes"));
  const auto named = RedisAddress::parse("redis://h?unchecked=yes&durability=none");
  ASSERT_TRUE(named);
  EXPECT_FALSE(named->checked);
}

TEST(RedisAddress, what_is_wrong_is_said_without_the_password) {
  for (const char* url :
       {"redis:6379", "redis://u:hush@h:port", "redis://u:hush@h:0", "redis://u:hush@h:65536",
        "redis://u:hush@h/db", "redis://u:hu%sh@h", "redis://u:hush@h?durability=perhaps",
        "redis://u:hush@h?tls=yes", "redis://u:hush@h?shards=0", "redis://u:hush@h?shards=1025",
        "redis://u:hush@h?prefix=", "redis://u:hush@h?prefix=%7Ba", "redis://u:hush@h?answer-ms=0",
        "redis://u:hush@h?unchecked=1"}) {
    const auto address = RedisAddress::parse(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().tag, "url");
    EXPECT_EQ(address.error().text.find("hush"), std::string::npos);
  }
}

TEST(RedisAddress, ipv6_address_stands_in_brackets) {
  const RedisAddress address = RedisAddress::parse("redis://:pw@[::1]:7000,b/2").value();
  EXPECT_EQ(address.hosts, (std::vector<Endpoint>{{"::1", 7000}, {"b", 6379}}));
  EXPECT_EQ(address.where(), "redis://[::1]:7000,b:6379/2");
  EXPECT_FALSE(RedisAddress::parse("redis://::1"));
}

}  // namespace
}  // namespace once
