// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <once/store.h>

#include <array>
#include <string>
#include <string_view>

namespace once {

// What a server says about itself.
struct RedisSettings {
  static constexpr std::array<std::string_view, 5> names{
      "appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy"};

  std::array<std::string, names.size()> values = {};  // in the order of the names
  bool replica = false;
  bool clustered = false;

  // From the text that INFO answers.
  void take_info(std::string_view info);
};

// Refuses settings with which the server cannot keep what is asked for.
[[nodiscard]] Status check_settings(const RedisSettings& settings, StoreTraits::Durability asked,
                                    std::string_view where);

// A server that does not tell its settings: what to do about it.
[[nodiscard]] Error unreadable_settings(Error error);

}  // namespace once
