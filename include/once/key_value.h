// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/outcome.h>
#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace once {

// What the reply to a command must be, and what becomes of the message if it is not: exactly what
// would happen if its handler had returned `otherwise`. The rest of the batch is not harmed.
struct ExpectReply {
  std::optional<std::int64_t> is = std::nullopt;
  std::optional<std::int64_t> at_least = std::nullopt;
  Outcome otherwise = parked("a command had another reply than expected");
  // Whose command it is. Unset: the message whose handler runs. A batch handler sets it.
  std::optional<std::size_t> message = std::nullopt;
};

// A transaction of a store that keeps values under keys. It sees its own writes.
class KeyValueTransaction : public Transaction {
 public:
  [[nodiscard]] virtual Result<std::optional<std::string>> get(std::string_view key) = 0;
  [[nodiscard]] virtual Status put(std::string_view key, std::string_view value) = 0;
  [[nodiscard]] virtual Status erase(std::string_view key) = 0;

  // Queues a command of the store itself, its words as the store takes them: on Redis
  // {"HINCRBY", "points:ann", "week 46", "5"}. Commands run in their order inside of `commit`, all
  // of them or none; one that the store refuses, or whose reply is not as expected, names its
  // message. `get` does not see what they do, and their keys must not be used with get, put or
  // erase in the same transaction.
  [[nodiscard]] virtual Status command(std::span<const std::string>, const ExpectReply& = {}) {
    return fail(Remedy::stop, "config", "this store has no commands of its own");
  }

  KeyValueTransaction* key_value() final { return this; }
};

}  // namespace once
