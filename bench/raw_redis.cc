// SPDX-License-Identifier: Apache-2.0
#include "raw_redis.h"

#include <hiredis/hiredis.h>

#include "harness.h"
#include "store/redis/address.h"

namespace once::bench {
namespace {

constexpr const char* lease_ms = "30000";

}  // namespace

RawRedis::RawRedis(const std::string& url) {
  const RedisAddress address = must(RedisAddress::parse(url));
  connection_ = redisConnect(address.hosts.front().host.c_str(), address.hosts.front().port);
  if (connection_ == nullptr || connection_->err != 0) give_up("raw Redis: cannot connect");
  run("AUTH " + address.password);
}

RawRedis::~RawRedis() { redisFree(connection_); }

void RawRedis::run(const std::string& command) {
  auto* const reply = static_cast<redisReply*>(redisCommand(connection_, command.c_str()));
  if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) give_up("raw Redis: " + command);
  freeReplyObject(reply);
}

std::size_t RawRedis::claim(std::span<const std::string> ids) {
  for (const std::string& id : ids)
    redisAppendCommand(connection_, "SET %b owner NX PX %s", id.data(), id.size(), lease_ms);
  std::size_t free = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    void* answer = nullptr;
    if (redisGetReply(connection_, &answer) != REDIS_OK) give_up("raw Redis: the answer was lost");
    auto* const reply = static_cast<redisReply*>(answer);
    if (reply->type == REDIS_REPLY_ERROR) give_up(std::string("raw Redis: ") + reply->str);
    if (reply->type == REDIS_REPLY_STATUS) ++free;
    freeReplyObject(reply);
  }
  return free;
}

}  // namespace once::bench
