// SPDX-License-Identifier: Apache-2.0
#include "store/redis/address.h"

#include <fmt/format.h>

#include <charconv>

#include "base/url.h"

namespace once {
namespace {

constexpr std::uint16_t default_port = 6379;
constexpr std::int64_t wait_ms_max = 600'000;
constexpr std::int64_t shards_max = 1024;
constexpr std::size_t prefix_bytes_max = 64;

tl::unexpected<Error> refuse(std::string text) {
  return fail(Remedy::stop, "url",
              std::move(text) + "; write redis://user:password@host:6379/0?durability=power");
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

}  // namespace

Result<RedisAddress> RedisAddress::parse(std::string_view text) {
  const Url url = ONCE_TRY(parse_url(text));
  if (!url.has_hosts) return refuse("the URL has no //");
  RedisAddress address;
  address.user = url.user;
  address.password = url.password;
  address.hosts = endpoints_of(url, default_port);
  if (!url.path.empty())
    address.database =
        static_cast<std::uint32_t>(ONCE_TRY(number_in("the database", url.path, 0, 1'000'000)));
  for (const auto& parameter : url.parameters)
    ONCE_TRY(set_option(address, parameter.first, parameter.second));
  if (!address.checked && !address.durability_named)
    return refuse(
        "with unchecked=yes nobody reads the settings of the server back: say what they keep with "
        "durability=power, process or none");
  return address;
}

std::string RedisAddress::where() const {
  std::string made = "redis://";
  for (const Endpoint& endpoint : hosts) {
    if (&endpoint != hosts.data()) made += ',';
    made += shown_endpoint(endpoint);
  }
  return made + fmt::format("/{}", database);
}

}  // namespace once
