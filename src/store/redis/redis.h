// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/outbox.h>
#include <once/records.h>
#include <once/store.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis/address.h"
#include "store/redis/keys.h"
#include "store/redis/nodes.h"

namespace once {

struct RedisStoreOptions {
  std::size_t idle_connections_max = 16;  // kept for the next call, per server
  // False: keys of ours that are missing stay so, and the store can only be asked what it is and
  // about commands.
  bool makes_keys = true;
  // Added to the server's clock, by which leases are judged. For tests.
  std::function<std::int64_t()> clock_skew_ms = {};
};

// A store in a Redis server or cluster. Everything committed survives what `durability` in its URL
// says, if the settings of the server do, which is read back on every new connection.
//
// A transaction is optimistic, as on the memory store: it remembers what it read, and `commit` is
// one script that checks all of it and then writes. Thread-safe: every call has a connection of its
// own while it lasts. The store outlives its transactions.
class RedisStore final : public Store,
                         private Outbox,
                         private Records,
                         private Repairs,
                         private ClaimStore,
                         private Deferrals,
                         private StatementChecker {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RedisStore>> open(std::string_view url,
                                                                RedisStoreOptions options);

  StoreTraits traits() const override;
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override;
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override;
  Result<Position> position(std::string_view scope, std::string_view partition) override;
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override;
  Outbox* outbox() override { return options_.makes_keys ? this : nullptr; }
  Records* records() override { return options_.makes_keys ? this : nullptr; }
  Repairs* repairs() override { return options_.makes_keys ? this : nullptr; }
  ClaimStore* claims() override { return options_.makes_keys ? this : nullptr; }
  Deferrals* deferrals() override { return options_.makes_keys ? this : nullptr; }
  StatementChecker* statement_checker() override { return this; }

 private:
  friend class RedisTransaction;

  RedisStore(RedisAddress address, RedisStoreOptions options);
  Status found();
  Status check_command(std::span<const std::string> words) override;

  std::int64_t skew_ms() const { return options_.clock_skew_ms ? options_.clock_skew_ms() : 0; }
  const RedisPlace& books() const { return keys_.books(); }
  // A call about the books.
  RedisCall command(std::initializer_list<std::string_view> words) const {
    return {books().slot(), words};
  }
  // A script, with the first word that all of them have.
  RedisCall script(const RedisPlace& place, const RedisScript& script,
                   std::initializer_list<std::string_view> keys) const;
  Result<RedisAnswer> ask(const RedisCall& call, RedisStage stage);
  // `see(field, value)` for everything in a hash, some fields twice.
  template <class See>
  Status scan(const RedisPlace& place, const std::string& key, const See& see);

  // Forgetting (forget.cc)
  struct Sweep {  // the passes over the ledger and the claims of a scope
    bool running = false;
    std::size_t stage = 0;  // 0: the ledger; then the shards
    std::string cursor = "0";
    std::int64_t horizon_ms = 0;        // of this pass
    std::int64_t clean_horizon_ms = 0;  // of the last one
    std::int64_t busy_ns = 0;
    std::int64_t rest_until_ns = 0;
  };
  Status move_horizon(std::string_view scope, std::int64_t horizon_ms);
  // Lets `script` write the horizon: in the shards, then in the books.
  Status write_horizon(std::string_view scope, std::int64_t horizon_ms, const RedisScript& how,
                       std::initializer_list<std::string_view> words);
  Status sweep_some(std::string_view scope, Sweep& sweep, std::size_t rows_max, std::size_t& gone);
  Result<bool> sweep_page(std::string_view scope, Sweep& sweep, std::size_t rows_left,
                          std::size_t& gone);

  // Outbox (outbox.cc)
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
  Status done_by_relay(const RedisAnswer& answer, std::string_view destination,
                       std::uint64_t fence) const;

  // Records (records.cc)
  Result<std::vector<std::string>> scopes() override;
  Result<std::vector<LedgerRecord>> ledger(std::string_view scope, std::string_view from_id,
                                           std::size_t count_max) override;
  Result<std::vector<ParkedRecord>> parked(std::string_view scope, std::int64_t after_number,
                                           std::size_t count_max) override;
  Result<std::vector<OperationRecord>> operations(std::string_view scope, std::int64_t after_number,
                                                  std::size_t count_max) override;
  Result<ScopeRecord> describe(std::string_view scope) override;
  struct StoredHorizon {
    std::int64_t ms = 0;
    bool held = false;
  };
  Result<StoredHorizon> stored_horizon(std::string_view scope);

  // Repairs (repairs.cc)
  Status force(std::string_view scope, std::string_view id, std::string_view reason) override;
  Status replay(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view destination, std::string_view reason) override;
  Status drop(std::string_view scope, std::span<const std::int64_t> numbers,
              std::string_view reason) override;
  Status correct(std::string_view scope, const Correction& correction,
                 std::string_view reason) override;
  Status set_position(std::string_view scope, const SetPosition& to, std::string_view reason);
  Status restart_destination(std::string_view scope, const std::string& destination,
                             const Correction& correction, std::string_view reason);
  Status drop_scope(std::string_view scope, std::string_view reason);
  Result<std::vector<std::string>> parked_ids(std::string_view scope,
                                              std::span<const std::int64_t> numbers);

  // Deferrals (deferrals.cc)
  Result<DueMessages> due(std::string_view scope, std::size_t count_max) override;
  Result<std::vector<DeferredRecord>> deferred(std::string_view scope, std::int64_t after_number,
                                               std::size_t count_max) override;
  Status hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view reason) override;
  Status abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                 std::string_view reason) override;
  Result<std::vector<std::string>> deferred_ids(std::string_view scope,
                                                std::span<const std::int64_t> numbers);

  // Claims (claims.cc)
  struct Claiming;
  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> claims) override;
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override;
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override;
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id, std::size_t count_max) override;
  RedisCall claim_call(const RedisPlace& shard, std::string_view scope, const ClaimTerms& terms,
                       const Claiming& claiming, std::vector<std::size_t>& places) const;
  Status claim_round(std::string_view scope, const ClaimTerms& terms, Claiming& claiming);
  Status write_decided(std::string_view scope, Claiming& claiming);
  template <class Item, class Add>
  Result<std::vector<bool>> change_each(std::string_view scope, const RedisScript& script,
                                        std::optional<std::int64_t> lease_ms,
                                        std::span<const Item> items, const Add& add);
  Result<std::int64_t> now_ms(const RedisPlace& place);
  Result<bool> force_once(std::string_view scope, const ClaimForce& force, ClaimRecord& record);

  const RedisAddress address_;
  const RedisStoreOptions options_;
  const RedisKeys keys_;
  RedisNodes nodes_;
  std::string identity_;  // set when it is opened

  std::mutex sweep_mutex_;  // taken with no other lock but those of nodes_
  std::map<std::string, Sweep, std::less<>> sweeps_;
};

template <class See>
Status RedisStore::scan(const RedisPlace& place, const std::string& key, const See& see) {
  constexpr std::string_view page_rows = "1000";
  std::string cursor = "0";
  do {
    const RedisAnswer page =
        ONCE_TRY(ask({place.slot(), {"HSCAN", key, cursor, "COUNT", page_rows}}, RedisStage::read));
    const RedisAnswer rows = page.at(1);
    for (std::size_t i = 0; i + 1 < rows.size(); i += 2)
      ONCE_TRY(see(rows.at(i).text(), rows.at(i + 1).text()));
    cursor = page.at(0).text();
  } while (cursor != "0");
  return {};
}

}  // namespace once
