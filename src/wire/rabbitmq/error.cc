// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/error.h"

#include <fmt/format.h>

namespace once::rabbitmq {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view advice;
};

constexpr Meaning away{Remedy::retry, "away", "is the broker up and reachable?"};
constexpr Meaning denied{Remedy::stop, "denied",
                         "give this user the right (docs/rabbitmq.md lists them)"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Meaning meaning_of_refusal(std::string_view text) {
  if (has(text, "Login was refused") || has(text, "authentication"))
    return {Remedy::stop, "denied", "check user and password"};
  return denied;
}

Meaning meaning_of_missing(std::string_view text) {
  // Of a queue whose node, or whose majority of nodes, is away.
  if (has(text, "down or inaccessible") || has(text, "stopped by supervisor")) return away;
  return {Remedy::stop, "missing",
          has(text, "no exchange") ? "create the exchange first" : "create the queue first"};
}

Meaning meaning_of_precondition(std::string_view text) {
  if (has(text, "larger than"))
    return {Remedy::park, "too_large", "the broker's max_message_size does not allow it"};
  if (has(text, "inequivalent arg"))
    return {Remedy::stop, "exists", "it exists with other settings"};
  if (has(text, "acknowledgement on channel") || has(text, "delivery tag"))
    return {Remedy::retry, "away", "the broker delivers again; see consumer_timeout"};
  return {Remedy::stop, "config", "check the settings of the queue or the exchange"};
}

Meaning meaning_of_vhost(std::string_view text) {
  if (has(text, "limit")) return {Remedy::retry, "exhausted", "the broker allows no more of them"};
  if (has(text, "is down")) return away;
  if (has(text, "not found"))
    return {Remedy::stop, "missing",
            "create the virtual host (rabbitmqctl add_vhost), or name another one in the URL"};
  return denied;
}

Meaning meaning_of_code(int code, std::string_view text) {
  switch (code) {
    case AMQP_ACCESS_REFUSED: return meaning_of_refusal(text);
    case AMQP_NOT_FOUND: return meaning_of_missing(text);
    case AMQP_PRECONDITION_FAILED: return meaning_of_precondition(text);
    case AMQP_NOT_ALLOWED: return meaning_of_vhost(text);
    case AMQP_RESOURCE_LOCKED:
      return {Remedy::stop, "busy", "another connection has it for itself alone"};
    case AMQP_CONTENT_TOO_LARGE:
      return {Remedy::park, "too_large", "the broker does not take this message"};
    case AMQP_SYNTAX_ERROR:
    case AMQP_COMMAND_INVALID:
    case AMQP_NOT_IMPLEMENTED:
      return {Remedy::stop, "config", "this broker or this kind of queue cannot do it"};
    case AMQP_CONNECTION_FORCED: return away;
    default: return {Remedy::retry, "rabbitmq", "try again"};
  }
}

Meaning meaning_of_status(int status, bool entering) {
  switch (status) {
    case AMQP_STATUS_NO_MEMORY: return {Remedy::retry, "exhausted", "there is too little memory"};
    case AMQP_STATUS_TABLE_TOO_BIG:
      return {Remedy::park, "too_large", "the headers do not fit into a frame"};
    case AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD:
      return {Remedy::stop, "denied", "the broker does not take passwords (PLAIN)"};
    case AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED:
    case AMQP_STATUS_SSL_PEER_VERIFY_FAILED:
      return {Remedy::stop, "denied", "check cacertfile and the name of the host"};
    case AMQP_STATUS_SSL_ERROR:
    case AMQP_STATUS_SSL_CONNECTION_FAILED:
    case AMQP_STATUS_SSL_SET_ENGINE_FAILED:
      if (!entering) return away;
      return {Remedy::stop, "denied", "check the port and the certificates (cacertfile, certfile)"};
    case AMQP_STATUS_BAD_AMQP_DATA:
    case AMQP_STATUS_UNKNOWN_CLASS:
    case AMQP_STATUS_UNKNOWN_METHOD:
    case AMQP_STATUS_INCOMPATIBLE_AMQP_VERSION:
    case AMQP_STATUS_WRONG_METHOD:
    case AMQP_STATUS_UNEXPECTED_STATE:
      if (!entering) return away;
      return {Remedy::stop, "config", "does this port speak AMQP 0-9-1?"};
    case AMQP_STATUS_BAD_URL:
    case AMQP_STATUS_INVALID_PARAMETER:
    case AMQP_STATUS_UNSUPPORTED: return {Remedy::stop, "config", "check the URL"};
    default: return away;
  }
}

Error error_of(const Meaning& meaning, std::string_view where, std::string_view what,
               std::string_view native) {
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot {}: {}; {}", where, what, native, meaning.advice), std::nullopt};
}

}  // namespace

Error error_from_broker(int code, std::string_view text, std::string_view where,
                        std::string_view what) {
  return error_of(meaning_of_code(code, text), where, what,
                  text.empty() ? fmt::format("the broker says {}", code) : text);
}

Error error_from_library(int status, std::string_view where, std::string_view what, bool entering,
                         std::string_view native) {
  return error_of(meaning_of_status(status, entering), where, what,
                  native.empty() ? amqp_error_string2(status) : native);
}

}  // namespace once::rabbitmq
