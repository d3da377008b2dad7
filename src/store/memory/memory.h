// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/clock.h>
#include <once/key_value.h>
#include <once/outbox.h>
#include <once/records.h>
#include <once/store.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/random.h"

namespace once {

class MemoryTransaction;

// Everything a memory store knows. A plain value: a copy is a snapshot.
struct MemoryState {
  struct LedgerRow {
    Fingerprint fingerprint;
    Outcome outcome;
    std::int64_t born_ms = 0;
    std::int64_t recorded_ms = 0;
    std::string partition;
    std::int64_t offset = 0;

    LedgerRecord record(std::string_view id) const {
      return {std::string(id), fingerprint, outcome, born_ms, recorded_ms, partition, offset};
    }
  };
  struct Scope {
    std::map<std::string, LedgerRow, std::less<>> ledger;
    std::set<std::pair<std::int64_t, std::string>> by_birth;  // for forgetting
    std::map<std::string, PartitionRecord, std::less<>> partitions;
    std::int64_t horizon_ms = 0;
    bool horizon_held = false;
    std::vector<ParkedRecord> parked;
    std::vector<OperationRecord> operations;
    std::map<std::string, ClaimRecord, std::less<>> claims;
    std::map<std::int64_t, DeferredRecord> deferred;
  };

  std::map<std::string, Scope, std::less<>> scopes;
  std::map<std::string, std::string, std::less<>> values;
  std::map<std::string, std::map<std::int64_t, OutboxRow>, std::less<>> outbox;
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> next_sequence;
  std::int64_t last_outbox_number = 0;
  std::int64_t last_parked_number = 0;
  std::int64_t last_deferred_number = 0;
  std::int64_t last_operation_number = 0;
  std::string identity;
};

// A store in this process's memory, for tests and simulations. Thread-safe.
//
// Transactions are optimistic, so that any number may be open on one thread: each remembers what
// it read, and `commit` checks under the store's lock that all of it still holds, then applies
// its writes at once. A rival that was faster is answered like a rival in an SQL store: a moved
// position with "fenced", an id or value that changed with the remedy `retry` and the tag
// "conflict". What a transaction reads before its commit fails may be a mixture of old and new.
//
// Nothing survives the process. A simulated crash is `crash`: committed state stays, transactions
// that were open can do nothing any more. The store outlives its transactions.
class MemoryStore final : public Store,
                          private Outbox,
                          private Records,
                          private Repairs,
                          private ClaimStore,
                          private Deferrals {
 public:
  explicit MemoryStore(Clock& clock) : MemoryStore(clock, random_identity()) {}
  MemoryStore(Clock& clock, std::string identity) : clock_(clock) {
    state_.identity = std::move(identity);
  }

  StoreTraits traits() const override;
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override;
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override;
  Result<Position> position(std::string_view scope, std::string_view partition) override;
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override;
  Outbox* outbox() override { return this; }
  Records* records() override { return this; }
  Repairs* repairs() override { return this; }
  ClaimStore* claims() override { return this; }
  Deferrals* deferrals() override { return this; }
  StatementChecker* statement_checker() override { return &refuse_statements_; }

  // For simulators.
  enum class CommitFault : std::uint8_t {
    none,
    refused,      // nothing is written, and the caller knows: remedy `retry`, tag "busy"
    constraint,   // the same, for good: remedy `park`, and no message is named
    lost_before,  // nothing is written, and the caller cannot know: remedy `recheck`, tag "lost"
    lost_after,   // all is written, and the caller cannot know: remedy `recheck`, tag "lost"
    lost_late,    // the same, but it is written only when the next one commits, if it still can be
  };
  // Asked at every commit of a transaction, under the store's lock. An empty function: no faults.
  void set_commit_fault(std::function<CommitFault()> fault);
  void crash();
  MemoryState snapshot() const;
  void restore(MemoryState state);

 private:
  friend class MemoryTransaction;

  Result<std::vector<std::string>> destinations() override;
  Result<std::vector<OutboxRow>> pending(std::string_view destination,
                                         std::size_t count_max) override;
  Status assign(std::string_view destination, std::uint64_t fence,
                std::span<const std::int64_t> numbers, std::span<const std::uint32_t> partitions,
                std::span<const std::uint64_t> sequences = {}) override;
  Status sent(std::string_view destination, std::uint64_t fence,
              std::span<const std::int64_t> numbers) override;
  Status park(std::string_view destination, std::uint64_t fence, std::int64_t number,
              std::string_view reason) override;

  Result<std::vector<std::string>> scopes() override;
  Result<std::vector<LedgerRecord>> ledger(std::string_view scope, std::string_view from_id,
                                           std::size_t count_max) override;
  Result<std::vector<ParkedRecord>> parked(std::string_view scope, std::int64_t after_number,
                                           std::size_t count_max) override;
  Result<std::vector<OperationRecord>> operations(std::string_view scope, std::int64_t after_number,
                                                  std::size_t count_max) override;
  Result<ScopeRecord> describe(std::string_view scope) override;

  Status force(std::string_view scope, std::string_view id, std::string_view reason) override;
  Status replay(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view destination, std::string_view reason) override;
  Status drop(std::string_view scope, std::span<const std::int64_t> numbers,
              std::string_view reason) override;
  Status correct(std::string_view scope, const Correction& correction,
                 std::string_view reason) override;

  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> claims) override;
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override;
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override;
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id, std::size_t count_max) override;

  Result<DueMessages> due(std::string_view scope, std::size_t count_max) override;
  Result<std::vector<DeferredRecord>> deferred(std::string_view scope, std::int64_t after_number,
                                               std::size_t count_max) override;
  Status hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view reason) override;
  Status abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                 std::string_view reason) override;

  // All of these need the lock.
  template <class Work>
  auto write(const Work& work) -> Result<std::invoke_result_t<Work>>;
  static Error lost_answer();
  std::vector<ParkedRecord>* find_parked(std::string_view scope);
  bool free_id(std::string_view scope, std::string_view id, bool parked_only);
  std::map<std::int64_t, DeferredRecord>* find_deferred(std::string_view scope);
  ClaimRecord* find_claim(std::string_view scope, std::string_view id);
  void forget_claims(MemoryState::Scope& books, std::size_t rows_max, Forgotten& forgotten);
  MemoryState::Scope& scope_at(std::string_view scope);
  const MemoryState::Scope* find_scope(std::string_view scope) const;
  Position position_at(std::string_view scope, std::string_view partition) const;
  PartitionRecord& partition_at(std::string_view scope, std::string_view partition);
  void restart_destination(const std::string& destination);
  Status check_fence(std::string_view destination, std::uint64_t fence) const;
  void log_operation(std::string_view scope, std::string_view action, std::string_view subject,
                     std::string_view reason);

  Clock& clock_;
  mutable std::mutex mutex_;
  MemoryState state_;
  std::uint64_t generation_ = 0;  // grows with every crash
  std::function<CommitFault()> commit_fault_;
  std::shared_ptr<MemoryTransaction> late_;  // on its way
  StatementChecker refuse_statements_;       // it runs neither SQL nor commands
};

// Under the lock; simulators make it fail like a commit.
template <class Work>
auto MemoryStore::write(const Work& work) -> Result<std::invoke_result_t<Work>> {
  const CommitFault fault = commit_fault_ ? commit_fault_() : CommitFault::none;
  if (fault == CommitFault::refused)
    return fail(Remedy::retry, "busy", "memory: the write was refused; try again");
  if (fault == CommitFault::lost_before || fault == CommitFault::lost_late)
    return fail(lost_answer());
  auto answer = work();
  if (fault == CommitFault::lost_after) return fail(lost_answer());
  return answer;
}

}  // namespace once
