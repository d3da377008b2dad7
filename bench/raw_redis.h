// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

struct redisContext;

namespace once::bench {

// What people write by hand with Redis: `SET id owner NX PX lease`, many in flight. Used by one
// thread.
class RawRedis {
 public:
  explicit RawRedis(const std::string& url);
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;
  ~RawRedis();

  // Sends all before it takes the first answer; answers how many were free.
  std::size_t claim(std::span<const std::string> ids);
  void run(const std::string& command);

 private:
  redisContext* connection_;
};

}  // namespace once::bench
