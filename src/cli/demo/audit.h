// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/result.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/demo/load.h"

namespace once::cli {

// Deliveries of one consumer that it had seen before.
struct Redeliveries {
  std::int64_t delivered = 0;
  std::int64_t on_delivery = 0;   // to the same process again
  std::int64_t on_rebalance = 0;  // to another process again: a restart or a new owner
};

// What the log and a database hold, counted id by id after everything has ended. Nothing here
// comes from a counter of the demo.
struct Audit {
  std::int64_t sent = 0;    // orders, by id, in the log
  std::int64_t in_log = 0;  // messages, copies included
  std::int64_t copies = 0;  // messages whose id was in the log before: a resend, new stamp
  std::int64_t orders = 0;  // rows
  std::int64_t payments = 0;
  std::int64_t points = 0;
  std::int64_t lost = 0;          // orders that lack an effect: a row of orders, payments or points
  std::int64_t duplicated = 0;    // orders that had one of these effects more than once
  std::int64_t out_of_order = 0;  // orders entered after a later one of the same customer
  std::int64_t parked = 0;
  std::int64_t refused = 0;   // processes that ended because they were not the owner any more
  std::string books;          // what does not balance; empty when all does
  Redeliveries redeliveries;  // of the consumer of orders

  bool kept() const { return lost == 0 && duplicated == 0 && out_of_order == 0 && books.empty(); }
};

struct AuditPlace {
  std::string database;  // file name in the directory
  std::string consumer;  // role whose journals tell the deliveries
};
Result<Audit> audit(const DemoSettings& settings, const AuditPlace& place);

// From the receipts of the gate: messages with a stamp that the log knew, and batches whose second
// half came first.
struct Receipts {
  std::int64_t same_stamp = 0;
  std::int64_t overtakings = 0;
};
Result<Receipts> read_receipts(const std::string& directory);

// The offset after the last message of each partition of a topic.
Result<std::map<std::string, std::int64_t>> ends_of(const std::string& directory,
                                                    std::string_view topic);

}  // namespace once::cli
