// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "store/redis/redis.h"
#include "testing/live_server.h"

namespace once::testing {

// As PostgresHome: a Redis, whose places are prefixes.
struct RedisHome {
  static constexpr const char* name = "redis";
  static constexpr const char* commit_mark = "EVALSHA";
  static constexpr const char* effect_table = "";
  static constexpr const char* kinds_table = "";

  static LiveServer& server() {
    static LiveServer made("redis");
    return made;
  }
  // A command of words without blanks; answers its text.
  static std::string administer(const std::string& command,
                                const std::string& url = server().url()) {
    const auto address = RedisAddress::parse(url + "?unchecked=yes&durability=none").value();
    auto admin = RedisConnection::open(address, address.hosts.front()).value();
    RedisCall call(0, {});
    std::istringstream words(command);
    for (std::string word; words >> word;) call.add(word == "\"\"" ? std::string() : word);
    const RedisCall* const one = &call;
    const auto answers = admin->ask(std::span(&one, 1), RedisStage::read);
    if (!answers) throw std::runtime_error(answers.error().text);
    if (answers->front().is_error()) throw std::runtime_error(std::string(answers->front().text()));
    return std::string(answers->front().text());
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
