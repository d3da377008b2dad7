// SPDX-License-Identifier: Apache-2.0
#include "store/redis/address.h"

#include <fmt/format.h>

#include <charconv>

namespace once {
namespace {

constexpr std::int64_t wait_ms_max = 600'000;
constexpr std::int64_t shards_max = 1024;
constexpr std::size_t prefix_bytes_max = 64;

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "url",
              std::move(text) + "; write redis://user:password@host:6379/0?durability=power");
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> decoded(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      made += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
    if (high < 0 || low < 0) return refuse("a % in the URL is not followed by two digits");
    made += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return made;
}

std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

Result<std::int64_t> number_in(std::string_view what, std::string_view text, std::int64_t min,
                               std::int64_t max) {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < min ||
      number > max)
    return refuse(fmt::format("{} is \"{}\", but must be between {} and {}", what, text, min, max));
  return number;
}

Status set_durability(RedisAddress& address, std::string_view value) {
  using Durability = StoreTraits::Durability;
  address.durability_named = true;
  if (value == "power")
    address.durability = Durability::power;
  else if (value == "process")
    address.durability = Durability::process;
  else if (value == "none")
    address.durability = Durability::none;
  else
    return refuse(fmt::format("durability is \"{}\", but must be power, process or none", value));
  return {};
}

Status set_prefix(RedisAddress& address, std::string value) {
  if (value.empty() || value.size() > prefix_bytes_max ||
      value.find_first_of("{}/") != std::string::npos)
    return refuse(fmt::format("prefix is \"{}\", but must have 1 to {} bytes and none of {{ }} /",
                              value, prefix_bytes_max));
  address.prefix = std::move(value);
  return {};
}

Status set_option(RedisAddress& address, std::string_view name, std::string value) {
  if (name == "durability") return set_durability(address, value);
  if (name == "prefix") return set_prefix(address, std::move(value));
  if (name == "keys") {
    address.keys = std::move(value);
  } else if (name == "unchecked") {
    if (value != "yes" && value != "no")
      return refuse(fmt::format("unchecked is \"{}\", but must be yes or no", value));
    address.checked = value == "no";
  } else if (name == "shards") {
    address.shards = static_cast<std::size_t>(ONCE_TRY(number_in(name, value, 1, shards_max)));
  } else if (name == "connect-ms") {
    address.connect_ms = ONCE_TRY(number_in(name, value, 1, wait_ms_max));
  } else if (name == "answer-ms") {
    address.answer_ms = ONCE_TRY(number_in(name, value, 1, wait_ms_max));
  } else {
    return refuse(
        fmt::format("redis: has no parameter \"{}\"; known: durability, unchecked, prefix, keys, "
                    "shards, connect-ms, answer-ms",
                    name));
  }
  return {};
}

Result<RedisEndpoint> endpoint_in(std::string_view text) {
  RedisEndpoint endpoint;
  if (const std::string_view name = cut(text, ':'); !name.empty())
    endpoint.host = ONCE_TRY(decoded(name));
  if (!text.empty())
    endpoint.port = static_cast<std::uint16_t>(ONCE_TRY(number_in("the port", text, 1, 65535)));
  return endpoint;
}

}  // namespace

Result<RedisAddress> RedisAddress::parse(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return refuse("the URL has no //");
  std::string_view options = url.substr(scheme + 3);
  std::string_view rest = cut(options, '?');
  RedisAddress address;
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    std::string_view who = rest.substr(0, at);
    rest = rest.substr(at + 1);
    address.user = ONCE_TRY(decoded(cut(who, ':')));
    address.password = ONCE_TRY(decoded(who));
  }
  std::string_view hosts = cut(rest, '/');
  do {
    address.hosts.push_back(ONCE_TRY(endpoint_in(cut(hosts, ','))));
  } while (!hosts.empty());
  if (!rest.empty())
    address.database =
        static_cast<std::uint32_t>(ONCE_TRY(number_in("the database", rest, 0, 1'000'000)));
  while (!options.empty()) {
    std::string_view value = cut(options, '&');
    const std::string_view name = cut(value, '=');
    ONCE_TRY(set_option(address, name, ONCE_TRY(decoded(value))));
  }
  if (!address.checked && !address.durability_named)
    return refuse(
        "with unchecked=yes nobody reads the settings of the server back: say what they keep with "
        "durability=power, process or none");
  return address;
}

std::string RedisAddress::where() const {
  std::string made = "redis://";
  for (const RedisEndpoint& endpoint : hosts)
    made +=
        fmt::format("{}{}:{}", &endpoint == hosts.data() ? "" : ",", endpoint.host, endpoint.port);
  return made + fmt::format("/{}", database);
}

}  // namespace once
