// SPDX-License-Identifier: Apache-2.0
#include "store/redis/call.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <charconv>
#include <iterator>

#include "base/assert.h"

namespace once {
namespace {

void append_word(std::string& bytes, std::string_view word) {
  fmt::format_to(std::back_inserter(bytes), "${}\r\n", word.size());
  bytes.append(word);
  bytes.append("\r\n");
}

}  // namespace

RedisScript::RedisScript(std::string_view text) : source(text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  ONCE_ASSERT(EVP_Digest(source.data(), source.size(), digest.data(), &size, EVP_sha1(), nullptr) ==
              1);
  for (unsigned i = 0; i < size; ++i) fmt::format_to(std::back_inserter(sha), "{:02x}", digest[i]);
}

RedisCall::RedisCall(std::uint16_t slot, std::initializer_list<std::string_view> words)
    : slot_(slot) {
  for (const std::string_view word : words) add(word);
}

RedisCall::RedisCall(std::uint16_t slot, const RedisScript& script,
                     std::initializer_list<std::string_view> keys)
    : slot_(slot), script_(&script) {
  add(static_cast<std::int64_t>(keys.size()));
  for (const std::string_view key : keys) add(key);
}

RedisCall::RedisCall(std::uint16_t slot, const RedisScript& script,
                     std::span<const std::string> keys)
    : slot_(slot), script_(&script) {
  add(static_cast<std::int64_t>(keys.size()));
  for (const std::string& key : keys) add(key);
}

RedisCall& RedisCall::add(std::string_view word) {
  append_word(body_, word);
  ++words_;
  return *this;
}

RedisCall& RedisCall::add(std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

void RedisCall::write_to(std::string& bytes, bool whole) const {
  fmt::format_to(std::back_inserter(bytes), "*{}\r\n", words_ + (script_ == nullptr ? 0 : 2));
  if (script_ != nullptr) {
    append_word(bytes, whole ? "EVAL" : "EVALSHA");
    append_word(bytes, whole ? script_->source : script_->sha);
  }
  bytes += body_;
}

std::string_view RedisAnswer::text() const {
  const bool has_text = reply_->type == REDIS_REPLY_STRING || reply_->type == REDIS_REPLY_STATUS ||
                        reply_->type == REDIS_REPLY_ERROR;
  return has_text ? std::string_view(reply_->str, reply_->len) : std::string_view();
}

std::int64_t RedisAnswer::number() const {
  if (reply_->type == REDIS_REPLY_INTEGER) return reply_->integer;
  std::int64_t number = 0;
  const std::string_view digits = text();
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

RedisAnswer RedisAnswer::at(std::size_t index) const {
  static const redisReply nothing = [] {
    redisReply made{};
    made.type = REDIS_REPLY_NIL;
    return made;
  }();
  return {nullptr, index < size() ? reply_->element[index] : &nothing};
}

}  // namespace once
