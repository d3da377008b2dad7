// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/error.h"

#include <fmt/format.h>

namespace once::pulsar {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

Meaning meaning_of(std::uint32_t code) {
  switch (static_cast<ServerError>(code)) {
    case ServerError::authentication:
      return {Remedy::stop, "denied", "check the token, and that it has not expired"};
    case ServerError::authorization:
      return {Remedy::stop, "denied", "give this role the right (docs/pulsar.md lists them)"};
    case ServerError::topic_not_found: return {Remedy::stop, "missing", "create the topic first"};
    case ServerError::subscription_not_found:
      return {Remedy::stop, "missing", "create the subscription first"};
    case ServerError::invalid_topic:
      return {Remedy::stop, "url", "write pulsar://HOST:PORT/[TENANT/NAMESPACE/]TOPIC"};
    case ServerError::consumer_busy:
      return {Remedy::retry, "busy", "another consumer has the subscription, or another type"};
    case ServerError::producer_busy:
      return {Remedy::retry, "busy", "another process sends under this name; end it"};
    case ServerError::producer_fenced:
      return {Remedy::stop, "fenced", "another process has taken over"};
    case ServerError::terminated:
      return {Remedy::stop, "terminated", "the topic was terminated: it takes no more messages"};
    case ServerError::incompatible_schema:
      return {Remedy::stop, "config", "the topic has a schema; Once sends bytes without one"};
    case ServerError::version:
    case ServerError::not_allowed: return {Remedy::stop, "config", "the broker does not permit it"};
    case ServerError::quota:
    case ServerError::quota_exception:
      return {Remedy::retry, "full", "the backlog quota is reached; consume, or raise it"};
    case ServerError::not_ready:
    case ServerError::metadata:
    case ServerError::persistence:
    case ServerError::too_many_requests:
    case ServerError::consumer_not_found:
      return {Remedy::retry, "away", "the broker is not ready; it is tried again"};
    case ServerError::checksum:
      return {Remedy::retry, "protocol", "it was damaged on its way to the broker"};
  }
  return {Remedy::retry, "pulsar", "it is tried again"};
}

// The broker's texts come with a stack of Java now and then.
std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

Error error_from_pulsar(std::uint32_t code, std::string_view where, std::string_view what,
                        std::string_view native) {
  const Meaning meaning = meaning_of(code);
  return {
      meaning.remedy, std::string(meaning.tag),
      fmt::format("{}: cannot {}: {} (error {}); {}", where, what,
                  native.empty() ? "the broker refuses" : first_line(native), code, meaning.advice),
      std::nullopt};
}

}  // namespace once::pulsar
