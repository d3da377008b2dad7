// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/error.h"

#include <gtest/gtest.h>

namespace once::kafka {
namespace {

struct Case {
  rd_kafka_resp_err_t code;
  Remedy remedy;
  const char* tag;
};

TEST(KafkaError, every_kind_has_its_remedy) {
  for (const Case& known : {
           Case{RD_KAFKA_RESP_ERR__TRANSPORT, Remedy::retry, "away"},
           Case{RD_KAFKA_RESP_ERR__TIMED_OUT, Remedy::retry, "away"},
           Case{RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, Remedy::retry, "away"},
           Case{RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, Remedy::retry, "away"},
           Case{RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, Remedy::retry, "away"},
           Case{RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Remedy::retry, "kafka"},
           Case{RD_KAFKA_RESP_ERR__AUTHENTICATION, Remedy::stop, "denied"},
           Case{RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, Remedy::stop, "denied"},
           Case{RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, Remedy::stop, "missing"},
           Case{RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, Remedy::stop, "gone"},
           Case{RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, Remedy::stop, "fenced"},
           Case{RD_KAFKA_RESP_ERR_PRODUCER_FENCED, Remedy::stop, "fenced"},
           Case{RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, Remedy::park, "refused"},
           Case{RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, Remedy::park, "refused"},
           Case{RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, Remedy::park, "refused"},
           Case{RD_KAFKA_RESP_ERR__INVALID_ARG, Remedy::stop, "config"},
       }) {
    const Error error = error_from_kafka(known.code, "kafka://a/t", "read");
    EXPECT_EQ(error.remedy, known.remedy) << error.text;
    EXPECT_EQ(error.tag, known.tag) << error.text;
    EXPECT_EQ(error.text.find("kafka://a/t: cannot read: "), 0u) << error.text;
  }
}

}  // namespace
}  // namespace once::kafka
