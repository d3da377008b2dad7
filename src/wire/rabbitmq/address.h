// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/url.h"

namespace once::rabbitmq {

inline constexpr std::uint16_t plain_port = 5672;
inline constexpr std::uint16_t tls_port = 5671;

enum class Role : std::uint8_t { source, sink, topic };

// A queue or an exchange of a virtual host and how to reach it, as RabbitMQ's URI specification has
// it, with parameters of ours behind the question mark:
//
//   amqp[s]://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...][/VHOST]?queue=NAME&...
//   amqp[s]://...?exchange=NAME[&routing_key=KEY]
//
// Without a path the virtual host is "/".
struct Address {
  bool tls = false;
  std::vector<Endpoint> brokers;  // one node of a cluster is enough; they are tried in turn
  std::string vhost = "/";
  std::string user = "guest";
  std::string password = "guest";

  std::string queue;
  std::string exchange;  // empty: the default exchange, which knows queues by their names
  bool has_routing_key = false;
  std::string routing_key;  // of a sink; of a topic the key of the binding

  // Of a connection.
  // 0: none. Only a source reads all the time, and so could answer them.
  std::uint16_t heartbeat_s = 0;
  std::int64_t connect_ms = 5'000;
  std::string ca_file;  // PEM; empty: what this machine trusts
  std::string certificate_file;
  std::string key_file;

  // Of a source.
  std::uint16_t prefetch = 1000;
  // How long a message can stay in the queue, as whoever has set its time-to-live knows; -1: for
  // ever.
  std::int64_t redelivery_ms_max = -1;
  bool stop_at_end = false;
  bool looks = false;  // `look=requeue`: whoever only looks may take messages and give them back

  // Of a topic: what the queue, the exchange and the binding are asked to be, as NAME and VALUE.
  std::vector<std::pair<std::string, std::string>> settings;

  static Result<Address> parse(std::string_view url, Role role);
  // Where it is, for people; holds no secret.
  std::string where() const;
  std::string server() const;  // without the queue or the exchange
};

}  // namespace once::rabbitmq
