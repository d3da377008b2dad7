// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/error.h"

#include <fmt/format.h>

namespace once::kafka {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

Meaning meaning_of(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
    case RD_KAFKA_RESP_ERR_ILLEGAL_SASL_STATE:
      return {Remedy::stop, "denied", "check user, password and sasl.mechanism"};
    case RD_KAFKA_RESP_ERR__SSL:
      return {Remedy::stop, "denied", "check security.protocol and the certificates (ssl.*)"};
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      return {Remedy::stop, "denied", "give this user the right (docs/kafka.md lists them)"};
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return {Remedy::stop, "missing", "create the topic first"};
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return {
          Remedy::stop, "gone",
          "messages were deleted, or the topic was created again or restored; keep them longer. "
          "`once position ls` shows the position, and `once position set --help` how to move it"};
    case RD_KAFKA_RESP_ERR__FENCED:
    case RD_KAFKA_RESP_ERR_PRODUCER_FENCED:
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
    case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
      return {Remedy::stop, "fenced", "another process has taken over"};
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
      return {Remedy::park, "refused", "the broker does not take this message"};
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
    case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE:
    case RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
      return {Remedy::stop, "config", "check the properties in the URL"};
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
      return {Remedy::retry, "away", "is the broker up and reachable?"};
    default: return {Remedy::retry, "kafka", "try again"};
  }
}

}  // namespace

Error error_from_kafka(rd_kafka_resp_err_t code, std::string_view where, std::string_view what,
                       std::string_view native) {
  const Meaning meaning = meaning_of(code);
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot {}: {} ({}); {}", where, what,
                      native.empty() ? rd_kafka_err2str(code) : native, rd_kafka_err2name(code),
                      meaning.advice),
          std::nullopt};
}

}  // namespace once::kafka
