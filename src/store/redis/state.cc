// SPDX-License-Identifier: Apache-2.0
#include "store/redis/state.h"

#include "store/redis/address.h"
#include "store/redis/keys.h"
#include "store/redis/nodes.h"
#include "store/redis/redis.h"

namespace once {

Result<StoreState> redis_store_state(const std::string& url) {
  const RedisAddress address = ONCE_TRY(RedisAddress::parse(url));
  const RedisKeys keys(address.prefix, address.shards);
  RedisNodes nodes(address, 1);
  const RedisCall call(keys.books().slot(), {"HGET", keys.books().key("meta"), "version"});
  const auto answers = ONCE_TRY(nodes.ask(std::span(&call, 1), RedisStage::read));
  return store_state(static_cast<std::size_t>(answers.at(0).number()),
                     static_cast<std::size_t>(redis_layout_version));
}

Result<std::unique_ptr<Store>> open_redis_store_to_look(const std::string& url) {
  return RedisStore::open(url, {.makes_keys = false});
}

}  // namespace once
