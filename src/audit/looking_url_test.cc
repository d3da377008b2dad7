// SPDX-License-Identifier: Apache-2.0
#include "audit/looking_url.h"

#include <gtest/gtest.h>

namespace once::audit {
namespace {

TEST(LookingUrl, names_no_group_and_keeps_the_rest_as_it_was_written) {
  const LookingUrl url =
      looking_url("kafka://h:1/orders?group=shop&sasl.username=a%26b&member=m-1&end=stop&start=x")
          .value();
  EXPECT_EQ(url.source, "kafka://h:1/orders?sasl.username=a%26b&end=stop");
  EXPECT_EQ(url.topic, "kafka://h:1/orders?sasl.username=a%26b");
  EXPECT_EQ(url.group, "shop");
}

TEST(LookingUrl, of_a_url_without_parameters_is_that_url) {
  for (const char* plain : {"kafka://h:1/orders", "file:data/orders"}) {
    const LookingUrl url = looking_url(plain).value();
    EXPECT_EQ(url.source, plain);
    EXPECT_EQ(url.topic, plain);
    EXPECT_EQ(url.group, "");
  }
}

// What a topic of the embedded log does not know is still refused where it is opened.
TEST(LookingUrl, leaves_out_what_only_kafka_knows_from_kafka_alone) {
  const LookingUrl url = looking_url("file:data/orders?group=x&end=stop").value();
  EXPECT_EQ(url.source, "file:data/orders?group=x&end=stop");
  EXPECT_EQ(url.topic, "file:data/orders?group=x");
  EXPECT_FALSE(looking_url("orders"));
}

TEST(LookingUrl, has_the_topics_one_by_one) {
  using Urls = std::vector<std::string>;
  EXPECT_EQ(looking_url("file:data/orders?end=stop").value().topics, Urls{"file:data/orders"});
  EXPECT_EQ(looking_url("file:data/orders,refunds").value().topics,
            (Urls{"file:data/orders", "file:data/refunds"}));
  EXPECT_EQ(looking_url("file:orders,refunds").value().topics,
            (Urls{"file:orders", "file:refunds"}));
  EXPECT_EQ(looking_url("kafka://a:1,b:2/orders,refunds?group=g&debug=all").value().topics,
            (Urls{"kafka://a:1,b:2/orders?debug=all", "kafka://a:1,b:2/refunds?debug=all"}));
}

}  // namespace
}  // namespace once::audit
