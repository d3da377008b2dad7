// SPDX-License-Identifier: Apache-2.0
#include "store/redis/settings.h"

#include <fmt/format.h>

namespace once {
namespace {

bool says(std::string_view info, std::string_view line) {
  const std::size_t at = info.find(line);
  return at != std::string_view::npos && (at == 0 || info[at - 1] == '\n');
}

}  // namespace

void RedisSettings::take_info(std::string_view info) {
  replica = says(info, "role:slave");
  clustered = says(info, "cluster_enabled:1");
}

Status check_settings(const RedisSettings& settings, StoreTraits::Durability asked,
                      std::string_view where) {
  using Durability = StoreTraits::Durability;
  const auto& [appendonly, appendfsync, unsynced_rewrite, maxmemory, policy] = settings.values;
  const auto unsafe = [&](std::string_view setting, std::string_view is, std::string_view harm,
                          std::string_view instead) {
    return fail(Remedy::stop, "unsafe",
                fmt::format("{}: {} is {}, and {}; {}", where, setting, is, harm, instead));
  };
  if (maxmemory != "0" && policy != "noeviction")
    return unsafe("maxmemory-policy", policy,
                  "with a maxmemory the server throws ids away, which then count as new",
                  "set it to noeviction");
  if (asked == Durability::none) return {};
  if (appendonly != "yes")
    return unsafe("appendonly", appendonly,
                  "a server that ends loses commits that were acknowledged",
                  "set it to yes, or lower the promise by name: ?durability=none");
  if (appendfsync == "everysec")
    return unsafe("appendfsync", appendfsync,
                  "a power cut loses commits that were acknowledged, and so does the death of the "
                  "server while a slow sync makes it hold its writes back",
                  "set it to always, or lower the promise by name: ?durability=none");
  if (asked == Durability::process) return {};
  if (appendfsync != "always")
    return unsafe("appendfsync", appendfsync, "a power cut loses commits that were acknowledged",
                  "set it to always, or lower the promise by name: ?durability=process");
  if (unsynced_rewrite != "no")
    return unsafe("no-appendfsync-on-rewrite", unsynced_rewrite,
                  "a power cut while the log is rewritten loses commits that were acknowledged",
                  "set it to no, or lower the promise by name: ?durability=process");
  return {};
}

Error unreadable_settings(Error error) {
  if (error.tag == "denied")
    error.text +=
        ". Where CONFIG GET and INFO cannot be allowed, say by name what the server keeps, "
        "unchecked: ?unchecked=yes&durability=power, process or none";
  return error;
}

}  // namespace once
