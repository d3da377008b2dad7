// SPDX-License-Identifier: Apache-2.0
#include "store/redis/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/failpoint.h"
#include "store/redis/settings.h"

namespace once {
namespace {

timeval time_of(std::int64_t ms) {
  return {static_cast<time_t>(ms / 1000), static_cast<suseconds_t>(ms % 1000 * 1000)};
}

}  // namespace

RedisConnection::RedisConnection(redisContext* context, const Endpoint& endpoint)
    : context_(context), endpoint_(endpoint), where_("redis://" + shown_endpoint(endpoint)) {}

Result<std::unique_ptr<RedisConnection>> RedisConnection::open(const RedisAddress& address,
                                                               const Endpoint& endpoint) {
  redisContext* const context =
      redisConnectWithTimeout(endpoint.host.c_str(), endpoint.port, time_of(address.connect_ms));
  if (context == nullptr) return fail(Remedy::retry, "exhausted", "redis: out of memory");
  std::unique_ptr<RedisConnection> connection(new RedisConnection(context, endpoint));
  if (context->err != 0 || redisSetTimeout(context, time_of(address.answer_ms)) != REDIS_OK)
    return fail(lost_connection(RedisStage::open, connection->where_, "connect", context->errstr));
  ONCE_TRY(connection->introduce(address));
  ONCE_TRY(connection->look_at_settings(address));
  return connection;
}

Status RedisConnection::introduce(const RedisAddress& address) {
  std::vector<RedisCall> calls;
  if (!address.user.empty())
    calls.push_back({0, {"AUTH", address.user, address.password}});
  else if (!address.password.empty())
    calls.push_back({0, {"AUTH", address.password}});
  if (address.database != 0) calls.push_back(RedisCall(0, {"SELECT"}).add(address.database));
  for (const RedisCall& call : calls) {
    const RedisCall* const one = &call;
    const auto answers = ONCE_TRY(ask(std::span(&one, 1), RedisStage::open));
    if (answers[0].is_error())
      return fail(error_from_redis(answers[0].text(), RedisStage::open, where_, "log in"));
  }
  return {};
}

Status RedisConnection::look_at_settings(const RedisAddress& address) {
  std::vector<RedisCall> calls{{0, {"INFO"}}};
  for (const std::string_view name : RedisSettings::names)
    calls.push_back({0, {"CONFIG", "GET", name}});
  std::vector<const RedisCall*> all;
  for (const RedisCall& call : calls) all.push_back(&call);
  const auto answers = ONCE_TRY(ask(all, RedisStage::open));
  RedisSettings settings;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].is_error()) {
      if (!address.checked && word_of(answers[i].text()) == "NOPERM") continue;
      return fail(unreadable_settings(
          error_from_redis(answers[i].text(), RedisStage::open, where_, "read the settings back")));
    }
    if (i == 0)
      settings.take_info(answers[0].text());
    else
      settings.values[i - 1] = answers[i].at(1).text();
  }
  clustered_ = settings.clustered;
  if (settings.replica)
    return fail(Remedy::retry, "replica",
                where_ + ": the server is a replica; connect to the primary");
  if (!address.checked) return {};
  return check_settings(settings, address.durability, where_);
}

bool RedisConnection::closed_by_server() const {
  char byte = 0;
  const ssize_t got = ::recv(context_->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

Status RedisConnection::send(std::string_view bytes, RedisStage stage) {
  // Not with hiredis, which would die of a SIGPIPE where the other side is gone.
  while (!bytes.empty()) {
    const ssize_t sent = ::send(context_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      broken_ = true;
      return fail(lost_connection(stage, where_, "send", std::strerror(errno)));
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<RedisAnswer> RedisConnection::receive(RedisStage stage) {
  void* reply = nullptr;
  if (redisGetReply(context_, &reply) == REDIS_OK && reply != nullptr)
    return RedisAnswer(static_cast<redisReply*>(reply));
  broken_ = true;
  const bool late = context_->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK);
  return fail(lost_connection(stage, where_, "receive an answer",
                              late ? "the server did not answer in time" : context_->errstr));
}

Result<std::vector<RedisAnswer>> RedisConnection::ask(std::span<const RedisCall* const> calls,
                                                      RedisStage stage) {
  std::string bytes;
  for (const RedisCall* call : calls) call->write_to(bytes, false);
  ONCE_TRY(send(bytes, stage));
  if (stage == RedisStage::write) ONCE_POINT(store_after_commit_sent);
  std::vector<RedisAnswer> answers;
  std::vector<std::size_t> unknown;
  answers.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    answers.push_back(ONCE_TRY(receive(stage)));
    if (calls[i]->is_script() && answers[i].is_error() && word_of(answers[i].text()) == "NOSCRIPT")
      unknown.push_back(i);
  }
  if (unknown.empty()) return answers;
  bytes.clear();
  for (const std::size_t i : unknown) calls[i]->write_to(bytes, true);
  ONCE_TRY(send(bytes, stage));
  for (const std::size_t i : unknown) answers[i] = ONCE_TRY(receive(stage));
  return answers;
}

}  // namespace once
