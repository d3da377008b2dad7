// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// Keys with one tag, so that a cluster keeps them in one slot: "{once}/ledger/shop".
class RedisPlace {
 public:
  explicit RedisPlace(std::string tag);

  std::uint16_t slot() const { return slot_; }
  std::string key(std::string_view kind, std::string_view name = {}) const;
  std::string root() const { return "{" + tag_ + "}/"; }
  const std::string& tag() const { return tag_; }

 private:
  std::string tag_;
  std::uint16_t slot_;
};

// Where a store keeps what. A transaction is one script, and a script works in one slot: so the
// books have one tag. Claims stand alone, and can be spread over shards by their ids.
class RedisKeys {
 public:
  RedisKeys(const std::string& prefix, std::size_t shards);

  const RedisPlace& books() const { return books_; }
  // With one shard, claims are beside the books.
  std::span<const RedisPlace> shards() const { return shards_; }
  std::size_t shard_of(std::string_view compact_id) const;

 private:
  RedisPlace books_;
  std::vector<RedisPlace> shards_;
};

}  // namespace once
