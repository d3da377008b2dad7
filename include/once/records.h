// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace once {

// What the ledger keeps of an id.
struct LedgerRecord {
  std::string id;
  Fingerprint fingerprint;
  Outcome outcome;
  std::int64_t born_ms = 0;
  std::int64_t recorded_ms = 0;
  std::string partition;
  std::int64_t offset = 0;
};

// A message that was set aside, whole, with the reason.
struct ParkedRecord {
  std::int64_t number = 0;
  std::string partition;
  std::int64_t offset = 0;
  std::uint32_t attempts = 0;
  std::int64_t parked_ms = 0;
  std::string reason;
  Message message;
};

// A line of the operation log: what was done to the books outside the flow of messages.
struct OperationRecord {
  std::int64_t number = 0;
  std::int64_t at_ms = 0;
  std::string action;  // "take", "park", "forget", "migrate", ...
  std::string subject;
  std::string reason;
};

// Reading what a store knows, for people and tests: "what happened to order 100?"
class Records {
 public:
  virtual ~Records() = default;
  [[nodiscard]] virtual Result<std::optional<LedgerRecord>> find(std::string_view scope,
                                                                 std::string_view id) = 0;
  [[nodiscard]] virtual Result<std::vector<ParkedRecord>> parked(std::string_view scope,
                                                                 std::int64_t after_number,
                                                                 std::size_t count_max) = 0;
  [[nodiscard]] virtual Result<std::vector<OperationRecord>> operations(std::string_view scope,
                                                                        std::int64_t after_number,
                                                                        std::size_t count_max) = 0;
  [[nodiscard]] virtual Result<std::int64_t> horizon_ms(std::string_view scope) = 0;
};

}  // namespace once
