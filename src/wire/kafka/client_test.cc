// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/client.h"

#include <gtest/gtest.h>

namespace once::kafka {
namespace {

// librdkafka refuses these when a client is made, not when they are set.
// The thread sanitizer does not see how librdkafka starts its threads, and crashes in them.
#ifndef __SANITIZE_THREAD__
TEST(KafkaClient, settings_that_do_not_work_are_an_error_and_no_crash) {
  for (const char* parameters :
       {"ssl.ca.location=/no/such/file.pem", "security.protocol=SSL&ssl.ca.location=/nofile",
        "security.protocol=SASL_PLAINTEXT", "security.protocol=SASL_PLAINTEXT&sasl.mechanism=PLAIN",
        "security.protocol=SASL_SSL", "security.protocol=SASL_PLAINTEXT&sasl.mechanism=FOO",
        "partition.assignment.strategy=foo",
        "partition.assignment.strategy=range,cooperative-sticky"}) {
    const std::string url = std::string("kafka://127.0.0.1:1/orders?") + parameters;
    const auto address = Address::parse(url, Role::source);
    ASSERT_TRUE(address) << address.error().text;
    for (const auto type : {RD_KAFKA_CONSUMER, RD_KAFKA_PRODUCER}) {
      const auto client = Client::make(type, *address, {{"group.id", "g"}});
      if (client) continue;  // what the other kind of client ignores
      EXPECT_EQ(client.error().tag, "url") << url;
      EXPECT_EQ(client.error().remedy, Remedy::stop) << url;
      EXPECT_FALSE(client.error().text.ends_with('\n')) << client.error().text;
    }
  }
}
#endif

}  // namespace
}  // namespace once::kafka
