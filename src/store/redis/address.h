// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>
#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/url.h"

namespace once {

// What a URL says: redis://user:password@host:port,host:port/db?durability=power&prefix=once
struct RedisAddress {
  std::string user = {};
  std::string password = {};
  std::vector<Endpoint> hosts = {};  // the first that answers and may be written to is used
  std::uint32_t database = 0;

  // What a commit must survive; the settings of the server are read back for it.
  StoreTraits::Durability durability = StoreTraits::Durability::power;
  bool durability_named = false;
  bool checked = true;          // false: the server does not tell its settings, and is believed
  std::string prefix = "once";  // of our own keys
  std::string keys = {};        // put before the keys of handlers
  std::size_t shards = 1;       // over which claims are spread
  std::int64_t connect_ms = 5'000;
  std::int64_t answer_ms = 10'000;

  static Result<RedisAddress> parse(std::string_view url);
  // For people: without user and password.
  std::string where() const;
};

}  // namespace once
