// SPDX-License-Identifier: Apache-2.0
#include "wire/mqtt/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace once::mqtt {
namespace {

constexpr std::size_t filter_bytes_max = 255;  // it is the name of the partition

constexpr std::array<std::string_view, 13> source_parameters{
    "client",   "qos",     "version",   "share", "expiry", "prefetch", "end",
    "retained", "headers", "keepalive", "ca",    "cert",   "key"};
constexpr std::array<std::string_view, 10> sink_parameters{
    "client", "qos", "version", "retain", "no_subscribers", "id", "keepalive", "ca", "cert", "key"};

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "url", text); }

template <class Number>
Status read_number(const std::string& name, const std::string& value, Number from, Number to,
                   Number& number) {
  const char* const end = value.data() + value.size();
  Number read = 0;
  const auto done = std::from_chars(value.data(), end, read);
  if (value.empty() || done.ec != std::errc() || done.ptr != end || read < from || read > to)
    return refuse(
        fmt::format("{} is \"{}\", but must be a number from {} to {}", name, value, from, to));
  number = read;
  return {};
}

Status choose(const std::string& name, const std::string& value, std::string_view yes,
              std::string_view no, bool& chosen) {
  if (value != yes && value != no)
    return refuse(fmt::format("{} is \"{}\", but must be {} or {}", name, value, yes, no));
  chosen = value == yes;
  return {};
}

Status set_parameter(Address& address, const std::string& name, const std::string& value) {
  if (name == "qos") return read_number<std::uint8_t>(name, value, 0, 2, address.qos);
  if (name == "expiry") return read_number(name, value, 1u, 0xfffffffeu, address.expiry_s);
  if (name == "prefetch")
    return read_number<std::uint16_t>(name, value, 1, 65'535, address.prefetch);
  if (name == "keepalive")
    return read_number<std::uint16_t>(name, value, 1, 65'535, address.keep_alive_s);
  if (name == "end") return choose(name, value, "stop", "wait", address.stop_at_end);
  if (name == "retained") return choose(name, value, "yes", "no", address.takes_retained);
  if (name == "headers") return choose(name, value, "own", "all", address.own_headers_only);
  if (name == "retain") return choose(name, value, "yes", "no", address.retain);
  if (name == "no_subscribers")
    return choose(name, value, "refuse", "accept", address.needs_subscribers);
  if (name == "version") {
    bool newer = true;
    ONCE_TRY(choose(name, value, "5", "3", newer));
    address.version = newer ? Version::v5 : Version::v3;
    return {};
  }
  if (name == "id") {
    if (value != "body") return refuse(fmt::format("id is \"{}\", but must be body", value));
    address.id_in_body = true;
    return {};
  }
  for (const auto& [known, member] : {std::pair{"client", &Address::client},
                                      {"share", &Address::share},
                                      {"ca", &Address::ca},
                                      {"cert", &Address::certificate},
                                      {"key", &Address::key}})
    if (name == known) address.*member = value;
  if (name == "client" && !is_text(value)) return refuse("client is not a text (UTF-8)");
  return {};
}

std::vector<std::string_view> known_parameters(Role role) {
  std::vector<std::string_view> known;
  if (role != Role::sink) known.assign(source_parameters.begin(), source_parameters.end());
  if (role == Role::sink || role == Role::topic)
    for (const std::string_view one : sink_parameters)
      if (std::find(known.begin(), known.end(), one) == known.end()) known.push_back(one);
  return known;
}

// "+" is a whole level, and "#" the last one.
bool is_filter(std::string_view filter) {
  while (true) {
    const std::string_view level = filter.substr(0, filter.find('/'));
    const bool is_last = level.size() == filter.size();
    if (level.size() > 1 && level.find_first_of("+#") != std::string_view::npos) return false;
    if (level == "#" && !is_last) return false;
    if (is_last) return true;
    filter.remove_prefix(level.size() + 1);
  }
}

Status check_topic(const Address& address, Role role, std::string_view url) {
  if (address.topic.empty())
    return refuse(
        fmt::format("\"{}\" does not name a topic; write mqtt://HOST:PORT/TOPIC", shown_url(url)));
  if (!is_text(address.topic))
    return refuse(fmt::format("the topic of \"{}\" is not a text (UTF-8)", shown_url(url)));
  if (role == Role::sink && address.topic.find_first_of("+#") != std::string::npos)
    return refuse(fmt::format("\"{}\" names many topics (+ and #); messages are sent to one",
                              shown_url(url)));
  if (role == Role::sink) return {};
  if (address.topic.starts_with("$share/"))
    return refuse("a shared subscription is written as share=GROUP, not in the topic");
  if (!is_filter(address.topic))
    return refuse(
        fmt::format("the topic of \"{}\" is not a filter: + is a whole level, and # the "
                    "last one",
                    shown_url(url)));
  if (address.topic.size() > filter_bytes_max)
    return refuse(fmt::format("the topic of \"{}\" has {} bytes; at most {} are allowed",
                              shown_url(url), address.topic.size(), filter_bytes_max));
  return {};
}

Status check_source(const Address& address) {
  if (address.client.empty() && address.qos > 0 && !address.only_looks)
    return refuse(
        "a source needs client=NAME: under this name the broker keeps the session, and in it what "
        "arrives while no process is connected. Each process needs its own. With qos=0 nothing is "
        "kept, and it can be left out");
  if (address.share.find_first_of("/+#") != std::string::npos || !is_text(address.share))
    return refuse("share names a group, without /, + and #");
  return {};
}

Status check_sink(const Address& address) {
  if (address.version == Version::v3 && !address.id_in_body)
    return refuse(
        "MQTT 3.1.1 has no place for the id of a message, so its consumers could not recognise a "
        "copy. Use version=5; or, if the body holds the id, set id=body. Keys, headers and times "
        "are then left out");
  if (address.version == Version::v5 && address.id_in_body)
    return refuse("id=body is for version=3: MQTT 5 has a place for the id of a message");
  return {};
}

}  // namespace

Result<Address> Address::parse(std::string_view text, Role role) {
  const Url url = ONCE_TRY(parse_url(text));
  Address address;
  address.tls = url.scheme == "mqtts";
  address.hosts = endpoints_of(url, address.tls ? tls_port : plain_port);
  address.user = url.user;
  address.password = url.password;
  address.topic = url.path;
  if (!is_text(address.user)) return refuse("the user is not a text (UTF-8)");
  if (address.password.size() > text_bytes_max) return refuse("the password is too long");
  ONCE_TRY(check_topic(address, role, text));
  ONCE_TRY(require_parameters(url, known_parameters(role)));
  for (const auto& [name, value] : url.parameters) ONCE_TRY(set_parameter(address, name, value));
  if (!address.tls && !(address.ca + address.certificate + address.key).empty())
    return refuse("ca, cert and key are for connections with TLS; write mqtts://");
  if (address.certificate.empty() != address.key.empty())
    return refuse("a certificate of our own needs cert=FILE and key=FILE");
  address.only_looks = role == Role::look;
  if (role == Role::sink) ONCE_TRY(check_sink(address));
  if (role == Role::source || role == Role::look) ONCE_TRY(check_source(address));
  if (address.only_looks) address.share.clear();
  return address;
}

std::string Address::subscription() const {
  return share.empty() ? topic : fmt::format("$share/{}/{}", share, topic);
}

std::string Address::where() const {
  std::vector<std::string> shown;
  shown.reserve(hosts.size());
  for (const Endpoint& host : hosts) shown.push_back(shown_endpoint(host));
  return fmt::format("mqtt{}://{}/{}", tls ? "s" : "", fmt::join(shown, ","), topic);
}

}  // namespace once::mqtt
