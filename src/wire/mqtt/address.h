// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "wire/mqtt/packet.h"

namespace once::mqtt {

// `look` is a source that disturbs nobody; `topic` may have the parameters of both.
enum class Role : std::uint8_t { source, look, sink, topic };

inline constexpr std::uint16_t plain_port = 1883;
inline constexpr std::uint16_t tls_port = 8883;

// A topic of an MQTT broker, or a filter of topics, and how to reach it:
//
//   mqtt[s]://[USER:PASSWORD@]HOST[:PORT][,HOST...]/TOPIC[?NAME=VALUE&...]
//
// docs/mqtt.md lists the parameters.
struct Address {
  std::vector<Endpoint> hosts;  // tried one after another
  bool tls = false;
  std::string user;
  std::string password;
  std::string topic;  // of a source, a filter
  Version version = Version::v5;
  std::uint8_t qos = 1;
  std::string client;
  std::uint16_t keep_alive_s = 30;
  // Of TLS: files. Empty: the authorities of the machine, no certificate of our own.
  std::string ca;
  std::string certificate;
  std::string key;

  // Only of a source.
  std::string share;
  std::uint32_t expiry_s = 6 * 24 * 3600;  // for how long the broker keeps the session
  std::uint16_t prefetch = 2000;           // unacknowledged messages: two usual batches
  bool stop_at_end = false;
  bool takes_retained = true;
  bool own_headers_only = false;
  bool only_looks = false;  // with a session of its own, which ends with the connection

  // Only of a sink.
  bool retain = false;
  bool needs_subscribers = true;
  bool id_in_body = false;  // of 3.1.1, which has no other place for it

  static Result<Address> parse(std::string_view url, Role role);
  // $share/GROUP/FILTER or the filter.
  std::string subscription() const;
  // For people; holds no secret.
  std::string where() const;
};

}  // namespace once::mqtt
