// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/error.h"

#include <fmt/format.h>

namespace once::mqtt {
namespace {

struct Meaning {
  Remedy remedy;
  std::string_view tag;
  std::string_view text;
  std::string_view advice;
};

constexpr std::string_view up = "is the broker up and reachable?";

Meaning meaning_of(std::uint8_t reason) {
  switch (reason) {
    case no_subscribers_reason:
      return {Remedy::retry, "unroutable", "nobody subscribes to the topic",
              "start its consumer first, or set no_subscribers=accept to let the broker drop it"};
    case 0x81:
    case 0x82: return {Remedy::retry, "protocol", "protocol error", "try again"};
    case 0x84:
      return {Remedy::stop, "config", "the broker does not speak this version of MQTT",
              "set version=3 for 3.1.1, or version=5"};
    case 0x85:
      return {Remedy::stop, "config", "the broker does not accept the client identifier",
              "set client= to one that it accepts"};
    case 0x86: return {Remedy::stop, "denied", "wrong user or password", "check both in the URL"};
    case 0x87:
      return {Remedy::stop, "denied", "not authorised",
              "check user and password, and give this user the right (docs/mqtt.md lists them)"};
    case 0x8A: return {Remedy::stop, "denied", "banned", "ask the owner of the broker"};
    case 0x8C:
      return {Remedy::stop, "denied", "bad authentication method",
              "only user and password, and certificates, are supported"};
    case session_taken_over:
      return {Remedy::stop, "fenced",
              "another connection with the same client identifier took over",
              "each process needs a client= of its own"};
    case 0x8F:
      return {Remedy::stop, "config", "the broker does not accept the topic filter", "correct it"};
    case 0x90:
      return {Remedy::stop, "config", "the broker does not accept the topic", "correct it"};
    case 0x95:
      return {Remedy::park, "too_large", "more than the broker accepts", "send a smaller message"};
    case 0x99:
      return {Remedy::park, "refused", "the broker does not accept the message", "correct it"};
    case 0x9A:
      return {Remedy::stop, "config", "the broker retains no messages", "leave out retain=yes"};
    case 0x9B:
      return {Remedy::stop, "config", "the broker does not have this QoS", "set a lower qos="};
    case 0x9E:
      return {Remedy::stop, "config", "the broker has no shared subscriptions", "leave out share="};
    case 0xA2: return {Remedy::stop, "config", "the broker allows no wildcards", "name one topic"};
    case 0x9C:
    case 0x9D: return {Remedy::stop, "config", "use another server", "change the URL"};
    case 0x88:
    case 0x89:
    case 0x8B:
    case 0x8D: return {Remedy::retry, "away", "the broker is not available", up};
    case 0x93:
    case 0x96:
    case 0x97:
    case 0x9F: return {Remedy::retry, "busy", "more than the broker takes at a time", "try again"};
    default: return {Remedy::retry, "mqtt", "the broker refuses", "see its log"};
  }
}

}  // namespace

std::uint8_t reason_of_return_code(std::uint8_t code) {
  switch (code) {
    case 0: return 0;
    case 1: return 0x84;
    case 2: return 0x85;
    case 3: return 0x88;
    case 4: return 0x86;
    case 5: return 0x87;
    default: return failures_begin;
  }
}

Error error_from_reason(std::uint8_t reason, std::string_view where, std::string_view what,
                        std::string_view told) {
  const Meaning meaning = meaning_of(reason);
  return {meaning.remedy, std::string(meaning.tag),
          fmt::format("{}: cannot {}: {} (reason {:#04x}{}{}); {}", where, what, meaning.text,
                      reason, told.empty() ? "" : ": ", told, meaning.advice),
          std::nullopt};
}

Error error_away(std::string_view where, std::string_view what, std::string_view why) {
  return {Remedy::retry, "away", fmt::format("{}: cannot {}: {}; {}", where, what, why, up),
          std::nullopt};
}

}  // namespace once::mqtt
