// SPDX-License-Identifier: Apache-2.0
#include "store/redis/keys.h"

#include <fmt/format.h>

#include <utility>

#include "store/redis/slot.h"

namespace once {

RedisPlace::RedisPlace(std::string tag) : tag_(std::move(tag)), slot_(slot_of(tag_)) {}

std::string RedisPlace::key(std::string_view kind, std::string_view name) const {
  std::string made = root();
  made += kind;
  if (!name.empty()) {
    made += '/';
    made += name;
  }
  return made;
}

RedisKeys::RedisKeys(const std::string& prefix, std::size_t shards) : books_(prefix) {
  if (shards == 1) shards_.push_back(books_);
  for (std::size_t i = 0; shards > 1 && i < shards; ++i)
    shards_.emplace_back(fmt::format("{}:{}", prefix, i));
}

std::size_t RedisKeys::shard_of(std::string_view compact_id) const {
  return shards_.size() == 1 ? 0 : crc16(compact_id) % shards_.size();
}

}  // namespace once
