// SPDX-License-Identifier: Apache-2.0
#include "wire/pulsar/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "base/file.h"

namespace once::pulsar {
namespace {

constexpr std::size_t unacknowledged_limit = 50'000;  // of a broker for each consumer, by default

constexpr std::array<std::string_view, 8> source_parameters{
    "subscription", "type", "end", "unacknowledged", "web", "ca", "listener", "token_file"};
constexpr std::array<std::string_view, 4> sink_parameters{"web", "ca", "listener", "token_file"};

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "url", text); }

Result<std::size_t> number_of(const std::string& name, const std::string& value,
                              std::size_t limit) {
  std::size_t number = 0;
  const char* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number > 0 && number <= limit) return number;
  return refuse(fmt::format("{} is \"{}\", but must be a number from 1 to {}", name, value, limit));
}

Result<Sharing> sharing_of(const std::string& type) {
  if (type == "failover") return Sharing::failover;
  if (type == "exclusive") return Sharing::exclusive;
  if (type == "shared") return Sharing::shared;
  if (type == "key_shared") return Sharing::key_shared;
  return refuse(
      fmt::format("type is \"{}\", but must be failover, exclusive, shared or key_shared", type));
}

// PORT, HOST:PORT or one of them behind http:// or https://; without that, as the brokers are
// reached.
Status set_web(Address& address, std::string value) {
  address.web_encrypts = address.tls.has_value();
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!value.starts_with(scheme)) continue;
    value.erase(0, scheme.size());
    address.web_encrypts = scheme == "https://";
  }
  const auto colon = value.rfind(':');
  Endpoint web{address.hosts.front().host, 0};
  if (colon != std::string::npos) web.host = value.substr(0, colon);
  const std::string port = colon == std::string::npos ? value : value.substr(colon + 1);
  web.port = static_cast<std::uint16_t>(ONCE_TRY(number_of("the port in web=", port, 65'535)));
  address.web = web;
  return {};
}

Status read_token(Address& address, const std::string& path) {
  constexpr std::int64_t bytes_max = 1 << 16;
  const auto content = read_file(system_files(), path, bytes_max);
  if (!content) return refuse("token_file: " + content.error().text);
  address.token = content->substr(0, content->find_last_not_of(" \t\r\n") + 1);
  return {};
}

Status set_parameter(Address& address, const std::string& name, const std::string& value) {
  if (name == "token_file") return read_token(address, value);
  if (name == "listener") address.listener = value;
  if (name == "subscription") address.subscription = value;
  if (name == "type") address.sharing = ONCE_TRY(sharing_of(value));
  if (name == "web") return set_web(address, value);
  if (name == "unacknowledged")
    address.unacknowledged_max = ONCE_TRY(number_of(name, value, unacknowledged_limit));
  if (name == "ca") {
    if (!address.tls) return refuse("ca= is for pulsar+ssl://");
    address.tls->ca = value;
  }
  if (name == "end") {
    if (value != "stop" && value != "wait")
      return refuse(fmt::format("end is \"{}\", but must be stop or wait", value));
    address.stop_at_end = value == "stop";
  }
  return {};
}

// TOPIC or TENANT/NAMESPACE/TOPIC; of a cluster nothing or TENANT/NAMESPACE.
Status set_path(Address& address, std::string_view path, Role role, std::string_view url) {
  const auto slashes = std::count(path.begin(), path.end(), '/');
  const bool has_empty =
      path.starts_with('/') || path.ends_with('/') || path.find("//") != std::string_view::npos;
  if (role == Role::cluster) {
    if (path.empty()) return {};
    if (slashes != 1 || has_empty)
      return refuse(
          fmt::format("\"{}\" does not name a cluster; write "
                      "pulsar://HOST:PORT[/TENANT/NAMESPACE]",
                      shown_url(url)));
    address.name_space = path;
    return {};
  }
  if (path.empty() || has_empty || (slashes != 0 && slashes != 2))
    return refuse(
        fmt::format("\"{}\" does not name a topic; write "
                    "pulsar://HOST:PORT/TOPIC or pulsar://HOST:PORT/TENANT/NAMESPACE/"
                    "TOPIC",
                    shown_url(url)));
  const auto last = path.rfind('/');
  if (last != std::string_view::npos) address.name_space = path.substr(0, last);
  address.topic = last == std::string_view::npos ? path : path.substr(last + 1);
  return {};
}

Status check_subscription(Address& address, std::string_view url) {
  if (address.sharing != Sharing::none && address.subscription.empty())
    return refuse(fmt::format("\"{}\": a type needs its subscription; add subscription=NAME",
                              shown_url(url)));
  if (address.sharing == Sharing::none && !address.subscription.empty())
    address.sharing = Sharing::failover;
  if (address.is_queue() && address.stop_at_end)
    return refuse(fmt::format("\"{}\": a subscription that is shared has no end; leave end= out",
                              shown_url(url)));
  return {};
}

}  // namespace

Result<Address> Address::parse(std::string_view text, Role role) {
  const Url url = ONCE_TRY(parse_url(text, "pulsar"));
  Address address;
  const bool encrypts = url.scheme == "pulsar+ssl";
  if (encrypts) address.tls.emplace();
  if (!url.has_hosts)
    return refuse(
        fmt::format("\"{}\" names no server; write pulsar://HOST:PORT/TOPIC", shown_url(text)));
  address.hosts = endpoints_of(url, encrypts ? tls_port : plain_port);
  if (!url.password.empty() && url.user != "token")
    return refuse(fmt::format("\"{}\": a token is written token:TOKEN@HOST", shown_url(text)));
  address.token = url.password;
  ONCE_TRY(set_path(address, url.path, role, text));
  ONCE_TRY(require_parameters(url, role == Role::source
                                       ? std::span<const std::string_view>(source_parameters)
                                       : std::span<const std::string_view>(sink_parameters)));
  for (const auto& [name, value] : url.parameters) ONCE_TRY(set_parameter(address, name, value));
  ONCE_TRY(check_subscription(address, text));
  return address;
}

std::string Address::full_topic() const {
  return fmt::format("persistent://{}/{}", name_space, topic);
}

std::string Address::where() const {
  std::string text = tls ? "pulsar+ssl://" : "pulsar://";
  for (std::size_t i = 0; i < hosts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", shown_endpoint(hosts[i]));
  if (name_space != "public/default" || topic.empty()) text += "/" + name_space;
  if (!topic.empty()) text += "/" + topic;
  return text;
}

}  // namespace once::pulsar
