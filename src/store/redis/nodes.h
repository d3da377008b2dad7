// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "store/redis/connection.h"

namespace once {

// The servers of a store: one, or the nodes of a cluster, found by following where they send us.
// Keeps idle connections. Thread-safe.
class RedisNodes {
 public:
  RedisNodes(const RedisAddress& address, std::size_t idle_connections_max)
      : address_(address), idle_connections_max_(idle_connections_max) {}

  // An answer to each request, and none of them is an error. Requests for one server go together.
  // If only some of several writes were done, the error says `recheck`.
  [[nodiscard]] Result<std::vector<RedisAnswer>> ask(std::span<const RedisCall> calls,
                                                     RedisStage stage);

  // Whether keys must be in one slot to be used together.
  bool clustered() const { return clustered_; }

 private:
  using Calls = std::vector<std::size_t>;  // by their places

  struct Asked {
    std::span<const RedisCall> calls;
    std::vector<std::optional<RedisAnswer>> answers;
    Calls open;  // not answered yet
  };

  Result<std::unique_ptr<RedisConnection>> lend(const Endpoint* endpoint);
  Result<std::unique_ptr<RedisConnection>> connect(const Endpoint* endpoint);
  void give_back(std::unique_ptr<RedisConnection> connection);
  void forget_node(const Endpoint& endpoint);
  // Where the first open request goes, and all others that go there, too.
  std::optional<Endpoint> next_group(const Asked& asked, Calls& group);
  Status ask_group(Asked& asked, const Calls& group, const std::optional<Endpoint>& endpoint,
                   RedisStage stage);
  Status ask_elsewhere(Asked& asked, std::size_t place, const Endpoint& endpoint, RedisStage stage);
  Status settle(Asked& asked, std::size_t place, RedisAnswer answer, RedisStage stage);

  const RedisAddress& address_;
  const std::size_t idle_connections_max_;
  std::atomic<bool> clustered_{false};

  std::mutex mutex_;  // taken with no other lock
  std::map<Endpoint, std::vector<std::unique_ptr<RedisConnection>>> idle_;
  std::map<std::uint16_t, Endpoint> slots_;  // where we were sent to; else: the first host
  std::optional<Endpoint> first_;            // the host that answered last
};

}  // namespace once
