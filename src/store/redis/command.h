// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/key_value.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace once {

// A command of a handler on its way into the script that commits: one that the script can undo if a
// later one fails. The key is that of the server.
struct RedisCommand {
  std::string name;  // in capitals
  std::string key;
  std::size_t key_place = 0;  // among the keys of all commands
  std::span<const std::string> arguments() const { return arguments_; }
  ExpectReply expect;
  std::optional<std::size_t> message;

  // Name, key and arguments. An unknown command, or another number of arguments, is an error with
  // the remedy `stop` that names those that are known.
  [[nodiscard]] static Result<RedisCommand> parse(std::span<const std::string> words);

 private:
  std::vector<std::string> arguments_;
};

}  // namespace once
