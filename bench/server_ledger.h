// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "load.h"
#include "server.h"

namespace once::bench {

// How our side does the work of a message.
enum class Way : std::uint8_t {
  each,           // a statement per message
  each_expected,  // the same, and it must touch one row
  batch,          // one statement for all new messages of a batch
  position_only,  // the same from an ordered source whose messages have no ids
};

// A store on a server with accounts, the pipelines that pay into them, and the tables of the peers.
class ServerLedger {
 public:
  ServerLedger(const ServerKind& kind, const std::string& url);

  // New messages through a pipeline with as many lanes, and as many partitions. Only that is timed;
  // the books are checked afterwards. Each call begins with an empty ledger, unless it was filled.
  double messages_per_s(Way way, IdKind ids, std::size_t count, std::size_t rows,
                        std::size_t lanes = 1);

  // The same by hand, on as many connections, each with a thread of its own.
  double recipe_messages_per_s(IdKind ids, std::size_t count, std::size_t connections);
  double set_based_messages_per_s(IdKind ids, std::size_t count, std::size_t rows);

  // Puts rows into the ledger as if that many messages had been handled, only faster.
  void fill(IdKind ids, std::uint64_t rows);

  // How long all but one in a hundred transactions take, with `rows` new messages each; at the same
  // time the oldest ids are forgotten in steps, if asked for.
  double p99_ms(IdKind ids, std::size_t transactions, std::size_t rows, bool forgetting);

 private:
  std::vector<Message> next_messages(IdKind ids, std::size_t count);
  double transaction_ms(std::span<const Message> messages);
  std::int64_t sum_of_balances();
  // Empties what both sides remember, so that all rounds begin alike.
  void clear();
  void check_books(std::int64_t before, std::size_t count);

  const ServerKind& kind_;
  const std::string url_;
  std::unique_ptr<Peer> peer_;
  std::unique_ptr<Store> store_;
  std::uint64_t filled_ = 0;  // rows that were there before any message
  std::uint64_t next_ = 0;    // the number of the next message
};

}  // namespace once::bench
