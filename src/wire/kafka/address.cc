// SPDX-License-Identifier: Apache-2.0
#include "wire/kafka/address.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/url.h"

namespace once::kafka {
namespace {

constexpr std::array<std::string_view, 5> source_parameters{"group", "member", "start", "end",
                                                            "properties"};
constexpr std::array<std::string_view, 1> sink_parameters{"properties"};

// What our promises stand on; nobody else may set it.
constexpr std::array<std::string_view, 12> reserved{
    "bootstrap.servers", "metadata.broker.list", "group.id",
    "transactional.id",  "enable.idempotence",   "acks",
    "isolation.level",   "enable.auto.commit",   "enable.auto.offset.store",
    "auto.offset.reset", "enable.partition.eof", "request.required.acks",
};

tl::unexpected<Error> refuse(const std::string& text) { return fail(Remedy::stop, "url", text); }

Status add_property(Address& address, std::string_view name, std::string value) {
  if (std::find(reserved.begin(), reserved.end(), name) != reserved.end())
    return refuse(fmt::format(
        "the property {} cannot be set: Once sets it, and its promise stands on that", name));
  address.properties.emplace_back(std::string(name), std::move(value));
  return {};
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

Status read_properties(Address& address, const std::string& path) {
  constexpr std::int64_t bytes_max = 1 << 20;
  const auto content = read_file(system_files(), path, bytes_max);
  if (!content) return refuse("properties: " + content.error().text);
  return address.add_properties(*content, path);
}

// A user in the URL means SASL over TLS, unless a property says otherwise.
Status add_user(Address& address, const Url& url) {
  if (url.user.empty()) return {};
  ONCE_TRY(add_property(address, "security.protocol", "SASL_SSL"));
  ONCE_TRY(add_property(address, "sasl.mechanism", "SCRAM-SHA-512"));
  ONCE_TRY(add_property(address, "sasl.username", url.user));
  return add_property(address, "sasl.password", url.password);
}

Status choose(const std::string& name, const std::string& value, std::string_view yes,
              std::string_view no, bool& chosen) {
  if (value != yes && value != no)
    return refuse(fmt::format("{} is \"{}\", but must be {} or {}", name, value, yes, no));
  chosen = value == yes;
  return {};
}

Status set_parameter(Address& address, const std::string& name, const std::string& value,
                     Role role) {
  const std::span<const std::string_view> known =
      role == Role::source ? std::span<const std::string_view>(source_parameters)
                           : std::span<const std::string_view>(sink_parameters);
  if (name.find('.') != std::string::npos || name == "debug")
    return add_property(address, name, value);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string_view guess = nearest(name, known);
    return refuse(fmt::format(
        "kafka: has no parameter \"{}\" here{}{}{}; known: {}, and librdkafka's properties with a "
        "dot in their names",
        name, guess.empty() ? "" : ", did you mean \"", guess, guess.empty() ? "" : "\"?",
        fmt::join(known, ", ")));
  }
  if (name == "properties") return read_properties(address, value);
  if (name == "end") return choose(name, value, "stop", "wait", address.stop_at_end);
  if (name == "start") return choose(name, value, "committed", "earliest", address.start_committed);
  (name == "member" ? address.member : address.group) = value;
  return {};
}

// Kafka allows no comma in the name of a topic.
Status set_topics(Address& address, Role role, std::string_view url) {
  std::string_view rest = address.topic;
  while (true) {
    const std::string name(rest.substr(0, rest.find(',')));
    const auto known = std::find(address.topics.begin(), address.topics.end(), name);
    if (name.empty() || known != address.topics.end())
      return refuse(fmt::format(
          "\"{}\" names {}; write kafka://HOST:PORT/TOPIC,TOPIC", shown_url(url),
          name.empty() ? "a topic that is empty" : fmt::format("the topic {} twice", name)));
    address.topics.push_back(name);
    if (name.size() == rest.size()) break;
    rest.remove_prefix(name.size() + 1);
  }
  if (role == Role::source || address.topics.size() == 1) return {};
  return refuse(
      fmt::format("\"{}\" names several topics; only a source has several", shown_url(url)));
}

Status check_names(const Address& address, Role role, std::string_view url) {
  if (role == Role::cluster) {
    if (!address.hosts.empty() && address.topic.empty()) return {};
    return refuse(
        fmt::format("\"{}\" does not name a cluster; write kafka://HOST:PORT", shown_url(url)));
  }
  if (!address.hosts.empty() && !address.topic.empty() &&
      address.topic.find('/') == std::string::npos)
    return {};
  return refuse(
      fmt::format("\"{}\" does not name a topic; write kafka://HOST:PORT/TOPIC", shown_url(url)));
}

}  // namespace

Result<Address> Address::parse(std::string_view text, Role role) {
  const Url url = ONCE_TRY(parse_url(text));
  Address address;
  address.hosts = url.hosts;
  address.topic = url.path;
  ONCE_TRY(check_names(address, role, text));
  if (role != Role::cluster) ONCE_TRY(set_topics(address, role, text));
  ONCE_TRY(add_user(address, url));
  for (const auto& parameter : url.parameters)
    ONCE_TRY(set_parameter(address, parameter.first, parameter.second, role));
  if (address.start_committed && address.group.empty())
    return refuse(
        fmt::format("\"{}\": start=committed needs the group that has committed", shown_url(text)));
  if (!address.member.empty() && address.group.empty())
    return refuse(fmt::format("\"{}\": a member needs its group; add group=", shown_url(text)));
  return address;
}

Status Address::add_properties(std::string_view rest, const std::string& name) {
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string_view text = trimmed(line);
    if (text.empty() || text[0] == '#') continue;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      return refuse(fmt::format("{}:{}: a property is written name=value", name, number));
    ONCE_TRY(add_property(*this, trimmed(text.substr(0, equals)),
                          std::string(trimmed(text.substr(equals + 1)))));
  }
  return {};
}

std::string Address::where() const {
  return fmt::format("kafka://{}{}{}", hosts, topic.empty() ? "" : "/", topic);
}

}  // namespace once::kafka
