// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace once {

// A script that runs on the server, atomically. Known there by the SHA-1 of its source.
struct RedisScript {
  explicit RedisScript(std::string_view text);

  std::string source;
  std::string sha;
};

// One request to a server: a command, or a script with its keys and arguments. Only writes are
// scripts.
class RedisCall {
 public:
  RedisCall(std::uint16_t slot, std::initializer_list<std::string_view> words);
  RedisCall(std::uint16_t slot, const RedisScript& script,
            std::initializer_list<std::string_view> keys);
  RedisCall(std::uint16_t slot, const RedisScript& script, std::span<const std::string> keys);

  RedisCall& add(std::string_view word);
  RedisCall& add(std::int64_t number);

  std::uint16_t slot() const { return slot_; }
  std::size_t words() const { return words_; }
  bool is_script() const { return script_ != nullptr; }
  // Appends the bytes that are sent; `whole` sends the source of the script with it.
  void write_to(std::string& bytes, bool whole) const;

 private:
  std::uint16_t slot_;
  const RedisScript* script_ = nullptr;
  std::size_t words_ = 0;
  std::string body_;
};

// What the server answered to one request, or a part of that.
class RedisAnswer {
 public:
  explicit RedisAnswer(redisReply* reply) : owned_(reply), reply_(reply) {}

  bool is_error() const { return reply_->type == REDIS_REPLY_ERROR; }
  bool is_nil() const { return reply_->type == REDIS_REPLY_NIL; }
  bool is_list() const { return reply_->type == REDIS_REPLY_ARRAY; }
  std::string_view text() const;
  // Of an integer, or of a text of digits; 0 of anything else.
  std::int64_t number() const;
  std::size_t size() const { return is_list() ? reply_->elements : 0; }
  // Does not outlive this one. One that is not there is nil.
  RedisAnswer at(std::size_t index) const;

 private:
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  RedisAnswer(std::nullptr_t, const redisReply* part) : reply_(part) {}

  std::unique_ptr<redisReply, Free> owned_;
  const redisReply* reply_;
};

}  // namespace once
