// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "load.h"

namespace once::bench {

enum class Dedup : bool { no, yes };

// One connection to a server and what people write on it by hand, done well: statements are
// prepared once, and a message is one row of a table of ids and one change of an account. Durable
// as our store is. Used by one thread.
class Peer {
 public:
  virtual ~Peer() = default;

  virtual void run(const std::string& statement) = 0;
  // The only column of the only row.
  virtual std::int64_t number(const std::string& statement) = 0;

  // The usual recipe: a transaction per message, in which the id is inserted if it is new, and if
  // it is, the account is changed.
  virtual void handle(const Message& message) = 0;
  // Set-based: all messages in one transaction, of each new id the account is changed. Without
  // dedup nobody looks at the ids.
  virtual void handle_all(std::span<const Message> messages, Dedup dedup) = 0;

  // Puts ids into the empty ledger of our store, as if that many messages of `scope` had been
  // handled, only faster. `progress` is told how many are in.
  virtual void fill_ledger(IdKind kind, std::uint64_t rows, std::int64_t scope,
                           const std::function<void(std::uint64_t)>& progress) = 0;
};

}  // namespace once::bench
