// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/address.h"

#include <gtest/gtest.h>

#include <string>

namespace once::mqtt {
namespace {

TEST(MqttAddress, is_read_whole) {
  const Address source =
      Address::parse(
          "mqtts://me:s%40cret@a,[::1]:1884/sensors/+/temp/%23?client=one&qos=2&version=5&share=g"
          "&expiry=60&prefetch=10&end=stop&retained=no&headers=own&keepalive=5&ca=/c&cert=/d&key=/"
          "e",
          Role::source)
          .value();
  EXPECT_TRUE(source.tls);
  EXPECT_EQ(source.hosts, (std::vector<Endpoint>{{"a", 8883}, {"::1", 1884}}));
  EXPECT_EQ(source.user, "me");
  EXPECT_EQ(source.password, "s@cret");
  EXPECT_EQ(source.topic, "sensors/+/temp/#");
  EXPECT_EQ(source.subscription(), "$share/g/sensors/+/temp/#");
  EXPECT_EQ(source.client, "one");
  EXPECT_EQ(source.qos, 2);
  EXPECT_EQ(source.expiry_s, 60u);
  EXPECT_EQ(source.prefetch, 10);
  EXPECT_TRUE(source.stop_at_end);
  EXPECT_FALSE(source.takes_retained);
  EXPECT_TRUE(source.own_headers_only);
  EXPECT_EQ(source.keep_alive_s, 5);
  EXPECT_EQ(source.ca + source.certificate + source.key, "/c/d/e");
  EXPECT_EQ(source.where(), "mqtts://a:8883,[::1]:1884/sensors/+/temp/#");

  const Address sink =
      Address::parse("mqtt://h/a/b?version=3&id=body&retain=yes&no_subscribers=accept", Role::sink)
          .value();
  EXPECT_EQ(sink.hosts, (std::vector<Endpoint>{{"h", 1883}}));
  EXPECT_EQ(sink.version, Version::v3);
  EXPECT_EQ(sink.qos, 1);
  EXPECT_TRUE(sink.retain);
  EXPECT_FALSE(sink.needs_subscribers);
  EXPECT_TRUE(Address::parse("mqtt://h/a?version=3&id=body&client=x", Role::topic));
}

TEST(MqttAddress, who_only_looks_has_no_session_and_no_share) {
  const Address look = Address::parse("mqtt://h/a?share=g", Role::look).value();
  EXPECT_TRUE(look.only_looks);
  EXPECT_EQ(look.subscription(), "a");
}

TEST(MqttAddress, what_is_wrong_is_named) {
  const auto refused = [](const std::string& url, Role role, const std::string& word) {
    const auto address = Address::parse(url, role);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().tag, "url") << url;
    EXPECT_NE(address.error().text.find(word), std::string::npos) << address.error().text;
    EXPECT_EQ(address.error().text.find("s3cret"), std::string::npos) << address.error().text;
  };
  refused("mqtt://me:s3cret@h", Role::source, "does not name a topic");
  refused("mqtt://me:s3cret@h/a", Role::source, "client=NAME");
  refused("mqtt://me:s3cret@h/a/b+?client=x", Role::source, "not a filter");
  refused("mqtt://me:s3cret@h/a/#/b?client=x", Role::source, "not a filter");
  refused("mqtt://h/$share/g/a?client=x", Role::source, "share=GROUP");
  refused("mqtt://h/" + std::string(300, 'a') + "?client=x", Role::source, "at most 255");
  refused("mqtt://me:s3cret@h/a/+", Role::sink, "many topics");
  refused("mqtt://h/a?client=x&qos=3", Role::source, "0 to 2");
  refused("mqtt://h/a?client=x&qos=", Role::source, "0 to 2");
  refused("mqtt://h/a?client=x&prefetch=0", Role::source, "1 to 65535");
  refused("mqtt://h/a?client=x&version=4", Role::source, "5 or 3");
  refused("mqtt://h/a?client=x&end=now", Role::source, "stop or wait");
  refused("mqtt://h/a?clint=x", Role::source, "did you mean \"client\"");
  refused("mqtt://h/a?prefetch=5", Role::sink, "no parameter");
  refused("mqtt://h/a?client=x&share=a/b", Role::source, "share");
  refused("mqtt://h/a?client=x&ca=/c", Role::source, "mqtts://");
  refused("mqtts://h/a?client=x&cert=/c", Role::source, "key=FILE");
  refused("mqtt://h/a?version=3", Role::sink, "id=body");
  refused("mqtt://h/a?id=body", Role::sink, "version=3");
  refused("mqtt://h/a?version=3&id=header", Role::sink, "must be body");
  EXPECT_TRUE(Address::parse("mqtt://h/a?qos=0", Role::source)) << "nothing is kept";
}

}  // namespace
}  // namespace once::mqtt
