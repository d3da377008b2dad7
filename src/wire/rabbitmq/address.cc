// SPDX-License-Identifier: Apache-2.0
#include "wire/rabbitmq/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace once::rabbitmq {
namespace {

constexpr std::uint16_t source_heartbeat_s = 30;
constexpr std::size_t short_string_bytes_max = 255;

// Of every role; `cacertfile` and the others are named by RabbitMQ.
constexpr auto connection_parameters =
    std::to_array<std::string_view>({"connection_timeout", "cacertfile", "certfile", "keyfile"});
constexpr auto source_parameters = std::to_array<std::string_view>(
    {"queue", "prefetch", "heartbeat", "end", "look", "redelivery_ms_max"});
constexpr auto sink_parameters =
    std::to_array<std::string_view>({"queue", "exchange", "routing_key"});
constexpr auto topic_parameters = std::to_array<std::string_view>(
    {"exchange", "routing_key", "type", "exchange_type", "max_length", "overflow", "delivery_limit",
     "dead_letter_exchange", "dead_letter_routing_key"});

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "url", text); }

std::vector<std::string_view> known_for(Role role) {
  std::vector<std::string_view> known;
  const auto add = [&](const auto& names) {
    known.insert(known.end(), names.begin(), names.end());
  };
  // The URL of a source also names its topic.
  if (role != Role::sink) add(source_parameters);
  if (role == Role::sink) add(sink_parameters);
  if (role == Role::topic) add(topic_parameters);
  add(connection_parameters);
  return known;
}

template <class Number>
Status read_number(const std::string& name, const std::string& value, Number least, Number& into) {
  Number number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc() || read.ptr != value.data() + value.size() || number < least)
    return refuse(fmt::format("{} is \"{}\", but must be a number from {} to {}", name, value,
                              least, std::numeric_limits<Number>::max()));
  into = number;
  return {};
}

Status choose(const std::string& name, const std::string& value, std::string_view yes,
              bool& chosen) {
  if (value != yes)
    return refuse(fmt::format("{} is \"{}\", but can only be {}", name, value, yes));
  chosen = true;
  return {};
}

Status set_parameter(Address& address, const std::string& name, const std::string& value) {
  if (name == "heartbeat") return read_number<std::uint16_t>(name, value, 0, address.heartbeat_s);
  if (name == "connection_timeout")
    return read_number<std::int64_t>(name, value, 1, address.connect_ms);
  if (name == "prefetch") return read_number<std::uint16_t>(name, value, 1, address.prefetch);
  if (name == "redelivery_ms_max")
    return read_number<std::int64_t>(name, value, 1, address.redelivery_ms_max);
  if (name == "end") return choose(name, value, "stop", address.stop_at_end);
  if (name == "look") return choose(name, value, "requeue", address.looks);
  if (name == "cacertfile")
    address.ca_file = value;
  else if (name == "certfile")
    address.certificate_file = value;
  else if (name == "keyfile")
    address.key_file = value;
  else if (name == "queue")
    address.queue = value;
  else if (name == "exchange")
    address.exchange = value;
  else if (name == "routing_key")
    address.routing_key = value;
  else
    address.settings.emplace_back(name, value);
  address.has_routing_key = address.has_routing_key || name == "routing_key";
  return {};
}

Status check_names(const Address& address, Role role, std::string_view url) {
  for (const std::string* name : {&address.queue, &address.exchange, &address.routing_key})
    if (name->size() > short_string_bytes_max)
      return refuse(fmt::format("\"{}\": a name has {} bytes; RabbitMQ allows {}", shown_url(url),
                                name->size(), short_string_bytes_max));
  if (role == Role::source && address.queue.empty())
    return refuse(fmt::format("\"{}\" names no queue; write {}?queue=NAME", shown_url(url),
                              address.server()));
  if (role != Role::sink) return {};
  if (address.queue.empty() == address.exchange.empty())
    return refuse(
        fmt::format("\"{}\" must name a queue or an exchange, and not both; write "
                    "{}?queue=NAME, or ?exchange=NAME&routing_key=KEY",
                    shown_url(url), address.server()));
  if (address.has_routing_key && address.exchange.empty())
    return refuse(
        fmt::format("\"{}\": a routing_key needs its exchange; add exchange=NAME", shown_url(url)));
  return {};
}

Status check_certificates(const Address& address, std::string_view url) {
  const bool has_files =
      !address.ca_file.empty() || !address.certificate_file.empty() || !address.key_file.empty();
  if (has_files && !address.tls)
    return refuse(
        fmt::format("\"{}\" has certificates without encryption; write amqps://", shown_url(url)));
  if (address.certificate_file.empty() != address.key_file.empty())
    return refuse(fmt::format("\"{}\": certfile and keyfile belong together", shown_url(url)));
  return {};
}

}  // namespace

Result<Address> Address::parse(std::string_view text, Role role) {
  const Url url = ONCE_TRY(parse_url(text));
  Address address;
  if (role == Role::source) address.heartbeat_s = source_heartbeat_s;
  address.tls = url.scheme == "amqps";
  address.brokers = endpoints_of(url, address.tls ? tls_port : plain_port);
  if (!url.path.empty()) address.vhost = url.path;
  if (!url.user.empty()) {
    address.user = url.user;
    address.password = url.password;
  }
  const std::vector<std::string_view> known = known_for(role);
  ONCE_TRY(require_parameters(url, known));
  for (const auto& [name, value] : url.parameters) ONCE_TRY(set_parameter(address, name, value));
  ONCE_TRY(check_names(address, role, text));
  ONCE_TRY(check_certificates(address, text));
  return address;
}

std::string Address::server() const {
  std::vector<std::string> hosts;
  for (const Endpoint& broker : brokers) hosts.push_back(shown_endpoint(broker));
  return fmt::format("{}://{}{}{}", tls ? "amqps" : "amqp", fmt::join(hosts, ","),
                     vhost == "/" ? "" : "/", vhost == "/" ? "" : vhost);
}

std::string Address::where() const {
  if (!queue.empty()) return fmt::format("{}?queue={}", server(), queue);
  if (!exchange.empty()) return fmt::format("{}?exchange={}", server(), exchange);
  return server();
}

}  // namespace once::rabbitmq
