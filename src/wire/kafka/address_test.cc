// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/address.h"

#include <gtest/gtest.h>

#include <fstream>

#include "testing/scratch.h"

namespace once::kafka {
namespace {

using Pair = std::pair<std::string, std::string>;

Address source_of(std::string_view url) { return Address::parse(url, Role::source).value(); }
Error refused(std::string_view url, Role role = Role::source) {
  const auto address = Address::parse(url, role);
  EXPECT_FALSE(address) << url;
  return address ? Error{} : address.error();
}

TEST(KafkaAddress, has_hosts_a_topic_and_choices) {
  const Address address =
      source_of("kafka://a:9092,b:9093/orders?group=points&start=committed&end=stop");
  EXPECT_EQ(address.hosts, "a:9092,b:9093");
  EXPECT_EQ(address.topic, "orders");
  EXPECT_EQ(address.group, "points");
  EXPECT_TRUE(address.start_committed);
  EXPECT_TRUE(address.stop_at_end);
}

TEST(KafkaAddress, of_a_source_may_have_several_topics) {
  const std::vector<std::string> both{"orders", "refunds"};
  EXPECT_EQ(source_of("kafka://a:9092,b:9093/orders,refunds?group=points").topics, both);
  EXPECT_EQ(source_of("kafka://a/orders,refunds").where(), "kafka://a/orders,refunds");
  EXPECT_NE(refused("kafka://a/orders,").text.find("a topic that is empty"), std::string::npos);
  EXPECT_NE(refused("kafka://a/orders,x,orders").text.find("the topic orders twice"),
            std::string::npos);
  EXPECT_NE(refused("kafka://a/orders,refunds", Role::sink).text.find("only a source has several"),
            std::string::npos);
}

TEST(KafkaAddress, a_member_has_a_name_in_its_group) {
  EXPECT_EQ(source_of("kafka://a/t?group=points&member=host-1").member, "host-1");
  EXPECT_EQ(source_of("kafka://a/t?group=points").member, "");
  EXPECT_NE(refused("kafka://a/t?member=host-1").text.find("add group="), std::string::npos);
  EXPECT_NE(refused("kafka://a/t?member=x", Role::sink).text.find("known: properties"),
            std::string::npos);
}

TEST(KafkaAddress, of_a_cluster_has_no_topic) {
  const Address address =
      Address::parse("kafka://me:secret@a:9092?ssl.ca.location=ca.pem", Role::cluster).value();
  EXPECT_EQ(address.hosts, "a:9092");
  EXPECT_EQ(address.where(), "kafka://a:9092");
  EXPECT_NE(std::find(address.properties.begin(), address.properties.end(),
                      Pair("ssl.ca.location", "ca.pem")),
            address.properties.end());
  for (const char* url : {"kafka://a/t", "kafka://", "kafka:a"})
    EXPECT_NE(refused(url, Role::cluster).text.find("write kafka://HOST:PORT"), std::string::npos)
        << url;
}

TEST(KafkaAddress, names_with_a_dot_are_librdkafkas) {
  EXPECT_EQ(source_of("kafka://a/t?fetch.min.bytes=10").properties,
            std::vector<Pair>({{"fetch.min.bytes", "10"}}));
}

TEST(KafkaAddress, a_user_means_sasl_over_tls_and_is_never_shown) {
  const Address address = source_of("kafka://me:top%20secret@a:9092/orders");
  EXPECT_NE(std::find(address.properties.begin(), address.properties.end(),
                      Pair("sasl.password", "top secret")),
            address.properties.end());
  EXPECT_EQ(address.where(), "kafka://a:9092/orders");
}

TEST(KafkaAddress, properties_are_read_from_a_file) {
  const testing::Scratch scratch;
  std::ofstream(scratch.path("kafka.properties"))
      << "# who we are\n\n sasl.username = me\nsasl.password=a=b \n";
  EXPECT_EQ(source_of("kafka://a/t?properties=" + scratch.path("kafka.properties")).properties,
            std::vector<Pair>({{"sasl.username", "me"}, {"sasl.password", "a=b"}}));
  std::ofstream(scratch.path("broken")) << "a=b\nnonsense\n";
  EXPECT_NE(refused("kafka://a/t?properties=" + scratch.path("broken")).text.find("broken:2"),
            std::string::npos);
  EXPECT_EQ(refused("kafka://a/t?properties=/nowhere").tag, "url");
}

TEST(KafkaAddress, what_the_promise_stands_on_cannot_be_set) {
  for (const char* name : {"enable.auto.commit", "isolation.level", "group.id",
                           "enable.idempotence", "transactional.id", "auto.offset.reset"}) {
    const std::string url = std::string("kafka://a/t?") + name + "=x";
    EXPECT_NE(refused(url).text.find(name), std::string::npos) << url;
  }
}

TEST(KafkaAddress, mistakes_are_answered_with_what_is_known) {
  EXPECT_NE(refused("kafka://a/t?gruop=x").text.find("did you mean \"group\"?"), std::string::npos);
  EXPECT_NE(refused("kafka://a/t?group=x", Role::sink).text.find("known: properties"),
            std::string::npos);
  EXPECT_NE(refused("kafka://a/t?end=now").text.find("stop or wait"), std::string::npos);
  EXPECT_NE(refused("kafka://a/t?start=committed").text.find("group"), std::string::npos);
  for (const char* url : {"kafka://a", "kafka:///t", "kafka://a/t/0", "kafka:t"})
    EXPECT_NE(refused(url).text.find("kafka://HOST:PORT/TOPIC"), std::string::npos) << url;
}

TEST(KafkaAddress, ipv6_address_stands_in_brackets) {
  const Address address = Address::parse("kafka://[::1]:9092,b:9093/orders", Role::source).value();
  EXPECT_EQ(address.hosts, "[::1]:9092,b:9093") << "as librdkafka reads it";
  EXPECT_EQ(address.where(), "kafka://[::1]:9092,b:9093/orders");
  EXPECT_FALSE(Address::parse("kafka://[::1:9092/orders", Role::source));
}

}  // namespace
}  // namespace once::kafka
