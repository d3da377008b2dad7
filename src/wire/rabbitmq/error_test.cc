// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/error.h"

#include <gtest/gtest.h>

namespace once::rabbitmq {
namespace {

struct Case {
  int code;
  const char* text;
  Remedy remedy;
  const char* tag;
};

// The texts are those of RabbitMQ.
TEST(RabbitError, what_a_broker_says_has_a_remedy) {
  for (const Case& one : {
           Case{403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.",
                Remedy::stop, "denied"},
           Case{403, "ACCESS_REFUSED - access to queue 'q' in vhost 'v' refused for user 'u'",
                Remedy::stop, "denied"},
           Case{404, "NOT_FOUND - no queue 'q' in vhost 'v'", Remedy::stop, "missing"},
           Case{404, "NOT_FOUND - no exchange 'e' in vhost 'v'", Remedy::stop, "missing"},
           Case{404, "NOT_FOUND - home node 'x' of durable queue 'q' is down or inaccessible",
                Remedy::retry, "away"},
           Case{405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q'",
                Remedy::stop, "busy"},
           Case{406, "PRECONDITION_FAILED - message size 5 is larger than configured max size 4",
                Remedy::park, "too_large"},
           Case{406, "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q'",
                Remedy::stop, "exists"},
           Case{406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out.",
                Remedy::retry, "away"},
           Case{530, "NOT_ALLOWED - vhost v not found", Remedy::stop, "missing"},
           Case{530, "NOT_ALLOWED - access to vhost 'v' refused for user 'u'", Remedy::stop,
                "denied"},
           Case{530, "NOT_ALLOWED - access to vhost 'v' refused: connection limit (1) is reached",
                Remedy::retry, "exhausted"},
           Case{320, "CONNECTION_FORCED - broker forced connection closure", Remedy::retry, "away"},
           Case{503, "COMMAND_INVALID - unknown exchange type 'odd'", Remedy::stop, "config"},
           Case{541, "INTERNAL_ERROR", Remedy::retry, "rabbitmq"},
       }) {
    const Error error = error_from_broker(one.code, one.text, "amqp://h?queue=q", "read");
    EXPECT_EQ(error.remedy, one.remedy) << one.text;
    EXPECT_EQ(error.tag, one.tag) << one.text;
    EXPECT_TRUE(error.text.starts_with("amqp://h?queue=q: cannot read: ")) << error.text;
    EXPECT_NE(error.text.find(one.text), std::string::npos);
  }
}

TEST(RabbitError, what_the_library_says_has_a_remedy) {
  for (const int status : {AMQP_STATUS_SOCKET_ERROR, AMQP_STATUS_CONNECTION_CLOSED,
                           AMQP_STATUS_TIMEOUT, AMQP_STATUS_HEARTBEAT_TIMEOUT,
                           AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED, AMQP_STATUS_SSL_ERROR}) {
    const Error error = error_from_library(status, "here", "read");
    EXPECT_EQ(error.remedy, Remedy::retry) << error.text;
    EXPECT_EQ(error.tag, "away") << error.text;
  }
  EXPECT_EQ(error_from_library(AMQP_STATUS_TABLE_TOO_BIG, "", "").remedy, Remedy::park);
  EXPECT_EQ(error_from_library(AMQP_STATUS_SSL_CONNECTION_FAILED, "", "", true).tag, "denied");
  EXPECT_EQ(error_from_library(AMQP_STATUS_BAD_AMQP_DATA, "", "", true).tag, "config");
  EXPECT_EQ(error_from_library(AMQP_STATUS_BAD_AMQP_DATA, "", "").tag, "away");
}

}  // namespace
}  // namespace once::rabbitmq
