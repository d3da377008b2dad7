// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"
#include "net/tls.h"

namespace once::pulsar {

inline constexpr std::uint16_t plain_port = 6650;
inline constexpr std::uint16_t tls_port = 6651;

enum class Role : std::uint8_t { source, sink, cluster };

// How a subscription is shared by its consumers.
enum class Sharing : std::uint8_t {
  none,        // no subscription: all partitions are ours, and nothing is acknowledged
  failover,    // each partition has one consumer, in order; another takes over
  exclusive,   // one consumer, in order; a second one waits
  shared,      // each message goes to one of them
  key_shared,  // and those of a key to the same one
};

// A topic of a Pulsar cluster and how to reach it:
//
//   pulsar[+ssl]://[token:TOKEN@]HOST:PORT[,HOST:PORT...]/[TENANT/NAMESPACE/]TOPIC[?NAME=VALUE...]
//
// Without tenant and namespace it is public/default. A cluster is named without a topic, or by its
// tenant and namespace.
struct Address {
  std::vector<Endpoint> hosts;
  std::string name_space = "public/default";  // with the tenant
  std::string topic;                          // its own name
  std::string token;                          // a secret
  std::optional<net::TlsOptions> tls;
  std::optional<Endpoint> web;  // of the admin API ...
  bool web_encrypts = false;    // ... by https
  std::string listener;         // of several that the brokers have
  std::string subscription;
  Sharing sharing = Sharing::none;
  bool stop_at_end = false;
  std::size_t unacknowledged_max = 10'000;  // of a subscription that is shared

  static Result<Address> parse(std::string_view url, Role role);
  bool is_queue() const { return sharing == Sharing::shared || sharing == Sharing::key_shared; }
  // persistent://public/default/orders
  std::string full_topic() const;
  // For people; holds no secret.
  std::string where() const;
};

}  // namespace once::pulsar
