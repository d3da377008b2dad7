// SPDX-License-Identifier: Apache-2.0
#include "store/redis/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace once {
namespace {

// Each has an entry of the same name in the script that commits, which says how it is undone.
struct Known {
  std::string_view name;
  std::size_t arguments_min;
  std::size_t arguments_max;
};
constexpr std::array<Known, 20> known{{
    {"SET", 1, 3},   {"SETNX", 1, 1},   {"INCRBY", 1, 1},       {"DECRBY", 1, 1},
    {"HSET", 2, 2},  {"HSETNX", 2, 2},  {"INCRBYFLOAT", 1, 1},  {"HINCRBY", 2, 2},
    {"HDEL", 1, 1},  {"SADD", 1, 1},    {"HINCRBYFLOAT", 2, 2}, {"SREM", 1, 1},
    {"ZADD", 2, 2},  {"ZINCRBY", 2, 2}, {"ZREM", 1, 1},         {"LPUSH", 1, 1},
    {"RPUSH", 1, 1}, {"EXPIRE", 1, 1},  {"PEXPIRE", 1, 1},      {"PERSIST", 0, 0},
}};

std::string names() {
  std::string all;
  for (const Known& one : known) all += fmt::format("{}{}", all.empty() ? "" : ", ", one.name);
  return all;
}

}  // namespace

Result<RedisCommand> RedisCommand::parse(std::span<const std::string> words) {
  RedisCommand made;
  if (words.size() < 2)
    return fail(Remedy::stop, "config", "a command has a name, a key and arguments");
  made.name = words[0];
  std::transform(made.name.begin(), made.name.end(), made.name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Known& one) { return one.name == made.name; });
  if (found == known.end())
    return fail(Remedy::stop, "config",
                fmt::format("the command {} cannot be part of a transaction that can be undone; "
                            "known: {}",
                            words[0], names()));
  made.key = words[1];
  made.arguments_.assign(words.begin() + 2, words.end());
  const std::size_t count = made.arguments_.size();
  if (count < found->arguments_min || count > found->arguments_max)
    return fail(Remedy::stop, "config",
                fmt::format("{} has {} arguments after its key here, not {}", made.name,
                            found->arguments_min, count));
  return made;
}

}  // namespace once
