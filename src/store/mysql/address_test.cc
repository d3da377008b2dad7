// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/address.h"

#include <gtest/gtest.h>

namespace once {
namespace {

TEST(MysqlAddress, says_who_where_and_what) {
  const auto address =
      MysqlAddress::parse("mysql://an%40n:s%3Acret@db.example:3307/shop?ssl=verify&ssl-ca=/ca.pem");
  ASSERT_TRUE(address) << address.error().text;
  EXPECT_EQ(address->user, "an@n");
  EXPECT_EQ(address->password, "s:cret");
  EXPECT_EQ(address->host, "db.example");
  EXPECT_EQ(address->port, 3307);
  EXPECT_EQ(address->database, "shop");
  EXPECT_EQ(address->ssl, "verify");
  EXPECT_EQ(address->ssl_ca, "/ca.pem");
  EXPECT_EQ(address->where(), "mysql://db.example:3307/shop");
  EXPECT_EQ(MysqlAddress::parse("mysql:///shop")->host, "localhost");
}

TEST(MysqlAddress, what_is_wrong_is_said_without_the_password) {
  for (const char* url :
       {"mysql:shop", "mysql://u:hush@h/", "mysql://u:hush@h:port/shop", "mysql://u:hu%sh@h/shop",
        "mysql://u:hush@h/shop?ssl=perhaps", "mysql://u:hush@h/shop?charset=utf8"}) {
    const auto address = MysqlAddress::parse(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().tag, "url");
    EXPECT_EQ(address.error().text.find("hush"), std::string::npos);
  }
}

TEST(MysqlAddress, ipv6_address_stands_in_brackets) {
  const MysqlAddress address = MysqlAddress::parse("mysql://me:pw@[::1]:3307/shop").value();
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, 3307);
  EXPECT_EQ(address.where(), "mysql://[::1]:3307/shop");
  EXPECT_FALSE(MysqlAddress::parse("mysql://[::1:3307/shop"));
}

}  // namespace
}  // namespace once
