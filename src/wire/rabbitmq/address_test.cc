// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/address.h"

#include <gtest/gtest.h>

namespace once::rabbitmq {
namespace {

TEST(RabbitAddress, a_queue_of_a_virtual_host) {
  const Address address =
      Address::parse("amqp://an%40n:s%3Acret@mq.example:5673/shop?queue=orders&prefetch=50",
                     Role::source)
          .value();
  EXPECT_FALSE(address.tls);
  EXPECT_EQ(address.brokers, (std::vector<Endpoint>{{"mq.example", 5673}}));
  EXPECT_EQ(address.vhost, "shop");
  EXPECT_EQ(address.user, "an@n");
  EXPECT_EQ(address.password, "s:cret");
  EXPECT_EQ(address.queue, "orders");
  EXPECT_EQ(address.prefetch, 50);
  EXPECT_EQ(address.where(), "amqp://mq.example:5673/shop?queue=orders");
}

TEST(RabbitAddress, what_is_left_out_is_as_in_RabbitMQ) {
  const Address address = Address::parse("amqps://a,b:1?queue=q", Role::sink).value();
  EXPECT_TRUE(address.tls);
  EXPECT_EQ(address.brokers, (std::vector<Endpoint>{{"a", 5671}, {"b", 1}}));
  EXPECT_EQ(address.vhost, "/");
  EXPECT_EQ(address.user, "guest");
  EXPECT_EQ(address.password, "guest");
  EXPECT_EQ(Address::parse("amqp://h/%2F?queue=q", Role::sink)->vhost, "/");
  EXPECT_EQ(Address::parse("amqp://h/?queue=q", Role::sink)->vhost, "/");
  EXPECT_EQ(Address::parse("amqp://h", Role::topic)->where(), "amqp://h:5672");
}

TEST(RabbitAddress, an_exchange_with_or_without_a_key_for_all) {
  const Address fixed =
      Address::parse("amqp://h?exchange=shop&routing_key=paid", Role::sink).value();
  EXPECT_TRUE(fixed.has_routing_key);
  EXPECT_EQ(fixed.routing_key, "paid");
  EXPECT_FALSE(Address::parse("amqp://h?exchange=shop", Role::sink)->has_routing_key);
}

struct Wrong {
  const char* url;
  Role role;
  const char* says;
};

TEST(RabbitAddress, what_is_wrong_is_named_without_the_password) {
  for (const Wrong& wrong : {
           Wrong{"amqp://u:hush@h/shop", Role::source, "names no queue"},
           Wrong{"amqp://u:hush@h?exchange=e", Role::source, "has no parameter \"exchange\""},
           Wrong{"amqp://u:hush@h", Role::sink, "must name a queue or an exchange"},
           Wrong{"amqp://u:hush@h?queue=q&exchange=e", Role::sink, "and not both"},
           Wrong{"amqp://u:hush@h?queue=q&routing_key=k", Role::sink, "needs its exchange"},
           Wrong{"amqp://u:hush@h?queue=q&prefetch=0", Role::source, "must be a number from 1"},
           Wrong{"amqp://u:hush@h?queue=q&prefetch=70000", Role::source, "to 65535"},
           Wrong{"amqp://u:hush@h?queue=q&end=wait", Role::source, "can only be stop"},
           Wrong{"amqp://u:hush@h?queue=q&cacertfile=x", Role::source, "write amqps://"},
           Wrong{"amqps://u:hush@h?queue=q&certfile=x", Role::source, "belong together"},
           Wrong{"amqp://u:hush@h?queue=q&heartbeat=5", Role::sink, "\"heartbeat\" here"},
       }) {
    const auto address = Address::parse(wrong.url, wrong.role);
    ASSERT_FALSE(address) << wrong.url;
    EXPECT_EQ(address.error().tag, "url");
    EXPECT_EQ(address.error().remedy, Remedy::stop);
    EXPECT_NE(address.error().text.find(wrong.says), std::string::npos) << address.error().text;
    EXPECT_EQ(address.error().text.find("hush"), std::string::npos) << address.error().text;
  }
  const std::string long_name(300, 'q');
  EXPECT_FALSE(Address::parse("amqp://h?queue=" + long_name, Role::source));
}

}  // namespace
}  // namespace once::rabbitmq
