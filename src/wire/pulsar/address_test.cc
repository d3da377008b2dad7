// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/address.h"

#include <gtest/gtest.h>

#include "wire/pulsar/admin.h"
#include "wire/pulsar/error.h"

namespace once::pulsar {
namespace {

Address source_of(std::string_view url) {
  const auto address = Address::parse(url, Role::source);
  EXPECT_TRUE(address) << address.error().text;
  return address.value_or(Address{});
}
std::string refused(std::string_view url, Role role = Role::source) {
  const auto address = Address::parse(url, role);
  EXPECT_FALSE(address) << url;
  if (address) return {};
  EXPECT_EQ(address.error().tag, "url");
  return address.error().text;
}
bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(PulsarAddress, has_hosts_a_topic_and_choices) {
  const Address address = source_of("pulsar://a,b:7000/orders?subscription=points&end=stop");
  EXPECT_EQ(address.hosts, (std::vector<Endpoint>{{"a", 6650}, {"b", 7000}}));
  EXPECT_EQ(address.full_topic(), "persistent://public/default/orders");
  EXPECT_EQ(address.subscription, "points");
  EXPECT_EQ(address.sharing, Sharing::failover);
  EXPECT_TRUE(address.stop_at_end);
  EXPECT_EQ(address.where(), "pulsar://a:6650,b:7000/orders");
}

TEST(PulsarAddress, a_topic_may_be_of_another_tenant) {
  const Address address = source_of("pulsar://a/shop/orders/paid");
  EXPECT_EQ(address.full_topic(), "persistent://shop/orders/paid");
  EXPECT_EQ(address.where(), "pulsar://a:6650/shop/orders/paid");
  EXPECT_TRUE(says(refused("pulsar://a/shop/paid"), "TENANT/NAMESPACE/"));
  EXPECT_TRUE(says(refused("pulsar://a"), "does not name a topic"));
  EXPECT_TRUE(says(refused("pulsar://a/a//b"), "does not name a topic"));
  EXPECT_EQ(Address::parse("pulsar://a/shop/orders", Role::cluster)->name_space, "shop/orders");
}

TEST(PulsarAddress, a_subscription_has_a_type) {
  const auto type_of = [](const std::string& type) {
    return source_of("pulsar://a/t?subscription=s&type=" + type).sharing;
  };
  EXPECT_EQ(type_of("failover"), Sharing::failover);
  EXPECT_EQ(type_of("exclusive"), Sharing::exclusive);
  EXPECT_EQ(type_of("shared"), Sharing::shared);
  EXPECT_EQ(type_of("key_shared"), Sharing::key_shared);
  EXPECT_EQ(source_of("pulsar://a/t").sharing, Sharing::none);
  EXPECT_TRUE(says(refused("pulsar://a/t?subscription=s&type=any"), "key_shared"));
  EXPECT_TRUE(says(refused("pulsar://a/t?type=shared"), "add subscription=NAME"));
  EXPECT_TRUE(says(refused("pulsar://a/t?subscription=s&type=shared&end=stop"), "has no end"));
  EXPECT_TRUE(says(refused("pulsar://a/t?unacknowledged=0"), "from 1 to 50000"));
}

TEST(PulsarAddress, a_token_is_a_secret) {
  const Address address = source_of("pulsar+ssl://token:Zq.Xw-Vj@a/t?ca=/etc/ca.pem");
  EXPECT_EQ(address.token, "Zq.Xw-Vj");
  EXPECT_EQ(address.tls->ca, "/etc/ca.pem");
  EXPECT_EQ(address.hosts.front().port, 6651);
  EXPECT_FALSE(says(address.where(), "Zq"));
  EXPECT_FALSE(says(refused("pulsar+ssl://me:Zq.Xw-Vj@a/t"), "Zq"));
  EXPECT_FALSE(says(refused("pulsar+ssl://token:Zq.Xw-Vj@a/t?subscripton=x"), "Zq"));
  EXPECT_TRUE(says(refused("pulsar://a/t?token_file=/nowhere/token"), "/nowhere/token"));
}

TEST(PulsarAddress, mistakes_are_named_with_what_was_meant) {
  EXPECT_TRUE(says(refused("pulsar://a/t?subscripton=x"), "did you mean \"subscription\"?"));
  EXPECT_TRUE(says(refused("pulsar://a/t?subscription=x", Role::sink), "known: web, ca"));
  EXPECT_TRUE(says(refused("pulsar://a/t?ca=x"), "pulsar+ssl://"));
  EXPECT_TRUE(says(refused("pulsar://a/t?end=now"), "stop or wait"));
  EXPECT_TRUE(says(refused("pulsar:orders"), "names no server"));
  EXPECT_TRUE(says(refused("pulsar://a/t?web=x"), "web="));
}

TEST(PulsarAddress, the_admin_api_is_where_it_says) {
  EXPECT_EQ(*source_of("pulsar://a/t?web=8080").web, (Endpoint{"a", 8080}));
  EXPECT_FALSE(source_of("pulsar://a/t?web=8080").web_encrypts);
  EXPECT_TRUE(source_of("pulsar+ssl://a/t?web=b:8443").web_encrypts);
  EXPECT_FALSE(source_of("pulsar+ssl://a/t?web=http://b:8080").web_encrypts);
  EXPECT_EQ(*source_of("pulsar://a/t?web=https://b:8443").web, (Endpoint{"b", 8443}));
  EXPECT_EQ(http_status("HTTP/1.1 204 No Content\r\n"), 204);
  EXPECT_EQ(http_status("SSH-2.0-OpenSSH"), 0);
}

TEST(PulsarErrors, have_a_remedy_a_tag_and_advice) {
  const auto check = [](ServerError code, Remedy remedy, std::string_view tag) {
    const Error error = error_from_pulsar(static_cast<std::uint32_t>(code), "a:6650", "send",
                                          "because\n\tat java.lang.Thread");
    EXPECT_EQ(error.remedy, remedy) << tag;
    EXPECT_EQ(error.tag, tag);
    EXPECT_TRUE(says(error.text, "a:6650: cannot send: because (error ")) << error.text;
    EXPECT_FALSE(says(error.text, "java.lang"));
  };
  check(ServerError::authentication, Remedy::stop, "denied");
  check(ServerError::authorization, Remedy::stop, "denied");
  check(ServerError::topic_not_found, Remedy::stop, "missing");
  check(ServerError::subscription_not_found, Remedy::stop, "missing");
  check(ServerError::consumer_busy, Remedy::retry, "busy");
  check(ServerError::producer_busy, Remedy::retry, "busy");
  check(ServerError::producer_fenced, Remedy::stop, "fenced");
  check(ServerError::terminated, Remedy::stop, "terminated");
  check(ServerError::not_allowed, Remedy::stop, "config");
  check(ServerError::incompatible_schema, Remedy::stop, "config");
  check(ServerError::quota, Remedy::retry, "full");
  check(ServerError::not_ready, Remedy::retry, "away");
  check(ServerError::persistence, Remedy::retry, "away");
  check(ServerError::checksum, Remedy::retry, "protocol");
  check(static_cast<ServerError>(0), Remedy::retry, "pulsar");
}

}  // namespace
}  // namespace once::pulsar
