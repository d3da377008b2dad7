// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/message.h>
#include <once/transaction.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
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

// A message that waits in the store until it is due.
struct DeferredRecord {
  std::int64_t number = 0;
  std::string partition;
  std::int64_t offset = 0;
  std::uint32_t attempts = 0;
  std::int64_t deferred_ms = 0;  // when it was put off, for the last time
  std::int64_t due_ms = 0;       // by the store's clock
  bool in_order = false;         // later messages of its key wait behind it
  std::string reason;
  Message message;
};

// A line of the operation log: what was done to the books outside the flow of messages. A scope
// keeps the newest 10,000 or so: older ones go when a partition is taken, the horizon moves or a
// person changes something.
struct OperationRecord {
  std::int64_t number = 0;
  std::int64_t at_ms = 0;
  std::string action;  // "take", "park", "forget", "migrate", "force", "replay", "drop", ...
  std::string subject;
  std::string reason;
};

// What is known of one partition of a scope.
struct PartitionRecord {
  std::string partition = {};
  Position position = {};
  std::string source_identity = {};
  std::int64_t settled_ms = -1;  // the youngest birth among settled messages; -1: none
  std::int64_t waiting_ms = -1;  // the oldest birth among delivered, unsettled messages; -1: none
  std::int64_t drained_ms = -1;  // when everything there was settled, by the store's clock
};

struct ScopeRecord {
  std::int64_t horizon_ms = 0;
  std::int64_t now_ms = 0;  // by the store's clock
  std::vector<PartitionRecord> partitions = {};
  bool horizon_held = false;  // a person has set it: it stays until it is released
};

// Reading what a store knows, for people and tests: "what happened to order 100?"
class Records {
 public:
  virtual ~Records() = default;
  // All scopes that have a ledger, positions, parked messages, operations or claims, by name.
  [[nodiscard]] virtual Result<std::vector<std::string>> scopes() = 0;
  // Records from this id on, in an order of the store's choice in which every id has one place.
  // An id that is there comes first when it is asked for.
  [[nodiscard]] virtual Result<std::vector<LedgerRecord>> ledger(std::string_view scope,
                                                                 std::string_view from_id,
                                                                 std::size_t count_max) = 0;
  [[nodiscard]] virtual Result<std::vector<ParkedRecord>> parked(std::string_view scope,
                                                                 std::int64_t after_number,
                                                                 std::size_t count_max) = 0;
  [[nodiscard]] virtual Result<std::vector<OperationRecord>> operations(std::string_view scope,
                                                                        std::int64_t after_number,
                                                                        std::size_t count_max) = 0;
  // The horizon and all partitions, by name. A scope that is not known has none.
  [[nodiscard]] virtual Result<ScopeRecord> describe(std::string_view scope) = 0;

  [[nodiscard]] Result<std::int64_t> horizon_ms(std::string_view scope) {
    return ONCE_TRY(describe(scope)).horizon_ms;
  }
  [[nodiscard]] Result<std::optional<LedgerRecord>> find(std::string_view scope,
                                                         std::string_view id) {
    auto records = ONCE_TRY(ledger(scope, id, 1));
    if (records.empty() || records.front().id != id) return std::nullopt;
    return std::move(records.front());
  }
};

struct DueMessages {
  std::vector<DeferredRecord> messages = {};  // by due time, then by number
  std::int64_t wait_ms = -1;                  // until the next one is due; -1: none waits
};

// Messages that wait in the store (Outcome::later). They get there and leave by transactions
// (Transaction::settle): whoever handles one that another has handled is told by `admit`.
class Deferrals {
 public:
  virtual ~Deferrals() = default;

  // Those that are due by the store's clock.
  [[nodiscard]] virtual Result<DueMessages> due(std::string_view scope, std::size_t count_max) = 0;

  // All of them, by number.
  [[nodiscard]] virtual Result<std::vector<DeferredRecord>> deferred(std::string_view scope,
                                                                     std::int64_t after_number,
                                                                     std::size_t count_max) = 0;

  // A person wants them handled now. All of them or none; one that does not wait is an error with
  // the tag "missing", also of `abandon`.
  [[nodiscard]] virtual Status hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                                      std::string_view reason) = 0;

  // Gives them up. Their ids stay in the ledger, as those of parked messages that are dropped.
  [[nodiscard]] virtual Status abandon(std::string_view scope,
                                       std::span<const std::int64_t> numbers,
                                       std::string_view reason) = 0;
};

// What a person may set. Owners of what is changed are fenced, so a running pipeline notices.
struct SetPosition {  // the next offset to handle; identity and witness are cleared
  std::string partition;
  std::int64_t offset = -1;
};
// May move back: ids that were forgotten in between then count as new. It is held where it was set
// until it is released: `forget` does not move it.
struct SetHorizon {
  std::int64_t horizon_ms = 0;
};
struct ReleaseHorizon {};    // it follows the progress of the scope again
struct RestartDestination {  // in the relay's scope: sequences count from 0, for a new producer
  std::string destination;
};
// In the relay's scope: what is pending is given up, sent without an answer or not, and the
// destination is restarted, so that no sequence is missing or given twice there.
struct DropPending {
  std::string destination;
};
// All that the scope has: ledger, positions, horizon, parked messages, claims and operation log.
// What it has emitted is still sent. The line about it goes to the log of `store_scope`.
struct DropScope {};
using Correction = std::variant<SetPosition, SetHorizon, ReleaseHorizon, RestartDestination,
                                DropPending, DropScope>;

// Where the operation log of the store itself is.
inline constexpr std::string_view store_scope = "once.store";

// The operator's hand: what a person changes in the books. Each call is one transaction and writes
// a line with the reason to the operation log; an empty reason is refused.
class Repairs {
 public:
  virtual ~Repairs() = default;

  // Frees an id on purpose: the next delivery with it counts as new. The operation log keeps what
  // the ledger had. An id that is not in the ledger is an error with the tag "missing".
  [[nodiscard]] virtual Status force(std::string_view scope, std::string_view id,
                                     std::string_view reason) = 0;

  // Sends parked messages once more: ids whose outcome is `parked` are freed (one that has had an
  // effect is not), the messages leave through the outbox for `destination` and are parked no
  // longer. All of them or none; one that is not parked is an
  // error with the tag "missing".
  [[nodiscard]] virtual Status replay(std::string_view scope, std::span<const std::int64_t> numbers,
                                      std::string_view destination, std::string_view reason) = 0;

  // Gives parked messages up. Their ids stay in the ledger.
  [[nodiscard]] virtual Status drop(std::string_view scope, std::span<const std::int64_t> numbers,
                                    std::string_view reason) = 0;

  [[nodiscard]] virtual Status correct(std::string_view scope, const Correction& correction,
                                       std::string_view reason) = 0;
};

}  // namespace once
