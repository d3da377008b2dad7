// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ledger.h"
#include "model/resuming.h"
#include "store/memory/memory.h"

namespace once {

// A transaction of a MemoryStore: what it read and what it will write, until `commit` checks the
// one and applies the other. Used by one thread.
class MemoryTransaction final : public KeyValueTransaction, private Resuming {
 public:
  MemoryTransaction(MemoryStore& store, std::string_view scope, std::uint64_t generation)
      : store_(store), scope_(scope), generation_(generation) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to,
                 const Progress& progress = {}) override;
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override;
  Status settle(const Delivery& delivery, const Outcome& outcome) override;
  Status enqueue(std::string_view destination, const Message& message) override;
  Status commit() override;

  Result<std::optional<std::string>> get(std::string_view key) override;
  Status put(std::string_view key, std::string_view value) override;
  Status erase(std::string_view key) override;

 private:
  struct Move {
    Position from;  // what was committed when we looked
    Position to;
    Progress progress;
  };

  // All of these need the store's lock.
  Status ask_gone(const Entry& entry, bool& gone) override;
  Result<std::vector<Verdict>> admit_plain(std::span<const Entry> entries) override;
  Status resume(const Entry& entry, Outcome::Kind from) override;
  Status ask_behind(const Entry& entry, Verdict& verdict) override;
  Status check_alive();
  Status validate() const;
  void apply();
  // As it stands, for a commit that arrives when nobody waits for it any more.
  std::unique_ptr<MemoryTransaction> let_go();
  static void arrive(MemoryStore& store);
  Verdict verdict_of(const Entry& entry);
  bool still_waits(std::int64_t number, std::uint32_t attempts) const;
  bool is_free(const std::string& id, std::int64_t born_ms) const;
  void put_off(const Delivery& delivery, const Outcome& outcome);

  MemoryStore& store_;
  const std::string scope_;
  const std::uint64_t generation_;
  std::optional<Error> doom_;  // what every later call answers
  bool finished_ = false;

  std::map<std::string, Move, std::less<>> moves_;
  std::map<std::string, MemoryState::LedgerRow, std::less<>> fresh_;
  std::vector<std::pair<std::string, std::int64_t>> freed_;  // admitted, then without an effect
  // Admitted although they have a record, with its outcome: `later` or `parked`.
  std::map<std::string, Outcome::Kind, std::less<>> resumed_;
  std::map<std::int64_t, std::uint32_t> due_;  // deferrals that were admitted, with their attempts
  std::map<std::int64_t, std::optional<DeferredRecord>> changed_;  // none: it waits no longer
  std::vector<DeferredRecord> deferred_;                           // for the first time
  std::vector<ParkedRecord> parked_;
  std::vector<OutboxRow> enqueued_;  // numbered when they came, as in an SQL store
  std::map<std::string, std::optional<std::string>, std::less<>> read_;
  std::map<std::string, std::optional<std::string>, std::less<>> written_;
};

}  // namespace once
