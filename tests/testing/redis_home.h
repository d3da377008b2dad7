// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "store/redis/redis.h"
#include "testing/live_server.h"

namespace once::testing {

// As PostgresHome: a Redis, whose places are prefixes.
struct RedisHome {
  static constexpr const char* name = "redis";
  static constexpr const char* commit_mark = "EVALSHA";
  static constexpr const char* effect_table = "";
  static constexpr const char* kinds_table = "";

  // Under the locale of the environment variable ONCE_REDIS_LOCALE, if there is one.
  static std::string locale() {
    const char* const asked = std::getenv("ONCE_REDIS_LOCALE");
    return asked == nullptr ? "" : asked;
  }
  static LiveServer& server() {
    static LiveServer made("redis", {.locale = locale()});
    return made;
  }
  using Words = std::vector<std::string>;
  // A command as one text, its words separated by blanks; answers its text.
  static std::string administer(const std::string& command,
                                const std::string& url = server().url()) {
    std::istringstream text(command);
    const Words words{std::istream_iterator<std::string>(text), {}};
    return std::string(answer_to(words, url).text());
  }
  // For a command that answers several.
  static Words list(const Words& command, const std::string& url = server().url()) {
    const RedisAnswer answer = answer_to(command, url);
    Words texts;
    for (std::size_t i = 0; i < answer.size(); ++i) texts.emplace_back(answer.at(i).text());
    return texts;
  }
  // Past the store's own connection, which refuses a replica.
  static RedisAnswer answer_to(const Words& words, const std::string& url) {
    const auto address = RedisAddress::parse(url).value();
    const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
        redisConnect(address.hosts[0].host.c_str(), address.hosts[0].port), redisFree);
    const RedisAnswer login(
        static_cast<redisReply*>(redisCommand(context.get(), "AUTH %s", address.password.c_str())));
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    void* const reply =
        redisCommandArgv(context.get(), static_cast<int>(words.size()), pointers.data(), nullptr);
    if (reply == nullptr) throw std::runtime_error(context->errstr);
    RedisAnswer answer(static_cast<redisReply*>(reply));
    if (answer.is_error()) throw std::runtime_error(std::string(answer.text()));
    return answer;
  }
  static std::string make_place() {
    static int places = 0;
    return fmt::format("place_{}", ++places);
  }
  static std::string in(const std::string& place, const std::string& url = server().url()) {
    return fmt::format("{}?prefix={}&keys={}:", url, place, place);
  }
  static Result<std::unique_ptr<Store>> open(const std::string& url,
                                             RedisStoreOptions options = {}) {
    return RedisStore::open(url, std::move(options));
  }
};

}  // namespace once::testing
