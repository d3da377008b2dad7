// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/redis/address.h"
#include "store/redis/call.h"
#include "store/redis/error.h"

namespace once {

// One connection to one server. Used by one thread at a time; the owner sees to that.
class RedisConnection {
 public:
  // Connects, says who we are, and reads the settings back. They can change at any time: so every
  // new connection looks.
  [[nodiscard]] static Result<std::unique_ptr<RedisConnection>> open(const RedisAddress& address,
                                                                     const Endpoint& endpoint);
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;
  ~RedisConnection() { redisFree(context_); }

  // Sends all requests together and waits for all answers, in their order. An answer may be an
  // error of the server. A script that the server does not know is sent again with its source.
  [[nodiscard]] Result<std::vector<RedisAnswer>> ask(std::span<const RedisCall* const> calls,
                                                     RedisStage stage);

  const Endpoint& endpoint() const { return endpoint_; }
  // Whether the server is a node of a cluster.
  bool clustered() const { return clustered_; }
  // Of no use any more.
  bool broken() const { return broken_; }
  // Whether the server has closed it while nobody used it.
  bool closed_by_server() const;
  void give_up() { broken_ = true; }

 private:
  RedisConnection(redisContext* context, const Endpoint& endpoint);
  Status introduce(const RedisAddress& address);
  Status look_at_settings(const RedisAddress& address);
  Status send(std::string_view bytes, RedisStage stage);
  Result<RedisAnswer> receive(RedisStage stage);

  redisContext* const context_;
  const Endpoint endpoint_;
  const std::string where_;
  bool clustered_ = false;
  bool broken_ = false;
};

}  // namespace once
