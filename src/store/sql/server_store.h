// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/outbox.h>
#include <once/records.h>
#include <once/store.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/sql_tables.h"
#include "store/sql/connection.h"
#include "store/sql/words.h"

namespace once {

// The columns of a position, and the position in a row of them.
inline constexpr std::string_view position_columns =
    "at_offset, fence, witness_offset, witness_digest";
Position position_in(const SqlAnswer& answer, int row, int column = 0);

// The columns of a ledger record, and the record in a row of them.
inline constexpr std::string_view record_columns =
    "id, fingerprint, outcome, result, born_ms, recorded_ms, at_offset, "
    "(SELECT name FROM once_name WHERE number = source_partition)";
LedgerRecord ledger_record_in(const SqlAnswer& answer, int row);

// The largest sequence of a route; the next number stands for none where NULL cannot
// (SqlWords::send_order).
inline constexpr std::int64_t sequence_max = std::numeric_limits<std::int64_t>::max() - 1;

struct ServerStoreOptions {
  // How many transactions and reads are under way at once (the URL says `connections=N`); whoever
  // comes next waits, at most `lend_ms_max`. One more connection, which nobody keeps, is used by
  // those who hold one already, so that they wait for nobody who waits for them.
  std::size_t connections_max = 64;
  std::int64_t lend_ms_max = 5'000;
  std::size_t idle_connections_max = 16;  // kept for the next transaction
  // False: tables of ours that are missing or of an older version stay so, and the store can only
  // be asked what it is and about statements.
  bool makes_tables = true;
  // Added to the server's clock, by which leases are judged. For tests.
  std::function<std::int64_t()> clock_skew_ms = {};
};

// Takes `connections=N` out of a URL; what is left is the adapter's.
[[nodiscard]] Result<std::string> without_own_parameters(std::string_view url,
                                                         ServerStoreOptions& options);

// A store in a database on a server. Thread-safe: every transaction and every read has a connection
// of its own while it lasts. The store outlives its transactions.
class ServerStore : public Store,
                    private Outbox,
                    private Records,
                    private Repairs,
                    private ClaimStore,
                    private Deferrals,
                    private StatementChecker {
 public:
  // A connection on loan; given back when it goes, unless it is broken.
  class Lease {
   public:
    Lease(ServerStore& store, std::unique_ptr<SqlConnection> connection)
        : store_(&store), connection_(std::move(connection)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) store_->give_back(std::move(connection_));
    }
    SqlConnection& operator*() const { return *connection_; }
    SqlConnection* operator->() const { return connection_.get(); }

   private:
    ServerStore* store_;
    std::unique_ptr<SqlConnection> connection_;
  };

  StoreTraits traits() const override;
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override;
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override;
  Result<Position> position(std::string_view scope, std::string_view partition) override;
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override;
  Outbox* outbox() override { return makes_tables() ? this : nullptr; }
  Records* records() override { return makes_tables() ? this : nullptr; }
  Repairs* repairs() override { return makes_tables() ? this : nullptr; }
  ClaimStore* claims() override { return makes_tables() ? this : nullptr; }
  Deferrals* deferrals() override { return makes_tables() ? this : nullptr; }
  StatementChecker* statement_checker() override { return this; }

 protected:
  // `where` is what people may see of the URL.
  ServerStore(std::string where, const SqlWords& words, ServerStoreOptions options)
      : where_(std::move(where)), words_(words), options_(std::move(options)) {}

  // What an adapter adds.
  virtual Result<std::unique_ptr<SqlConnection>> connect() = 0;
  virtual std::unique_ptr<Transaction> make_transaction(std::int64_t scope_number,
                                                        std::string_view scope, Lease lease) = 0;
  // Begins a transaction of a handler.
  virtual Status begin_on(SqlConnection& connection) { return connection.begin(); }
  // Waits until nobody admits with the old horizon, inside the transaction that moves it.
  virtual Status lock_horizon(SqlConnection& connection, std::int64_t scope) = 0;
  // Which rows of a table may go: those of a scope that were born before and meet the condition.
  struct Old {
    std::string_view table;
    std::string_view condition;
    std::int64_t scope = 0;
    std::int64_t horizon_ms = 0;
  };
  // Deletes the oldest of them, in one statement; answers how many.
  virtual Result<std::int64_t> delete_old(SqlConnection& connection, const Old& old,
                                          std::size_t rows_max) = 0;

  // Why the effects in one of these tables, or in what their triggers and views write, would not
  // be part of the transaction; empty if all of them are.
  virtual Result<std::string> untransactional(SqlConnection& connection,
                                              const std::vector<SqlName>& names) = 0;

  const std::string& where() const { return where_; }
  bool makes_tables() const { return options_.makes_tables; }
  // Not to be called by who has a lease: see `aside`.
  Result<Lease> lend();
  // Called once, when the schema is there. The first program that finds no identity makes one.
  Status read_identity(SqlConnection& connection);

 private:
  friend class ServerTransaction;

  void give_back(std::unique_ptr<SqlConnection> connection);
  // Runs `work(SqlConnection&)` on the additional connection, outside of any transaction.
  template <class Work>
  auto aside(const Work& work) -> std::invoke_result_t<Work, SqlConnection&> {
    const std::lock_guard lock(aside_mutex_);
    if (aside_ == nullptr) aside_ = ONCE_TRY(connect());
    auto done = work(*aside_);
    if (!aside_->reset()) {
      aside_.reset();
      forget_what_is_known();
    }
    return done;
  }
  // After a lost connection: what comes back may be a restored database, in which names have other
  // numbers.
  void forget_what_is_known();
  // The number of a name, made in a transaction of its own when it is new.
  Result<std::int64_t> number_of(std::string_view name);
  // The error of who has lost a position; forgets the numbers of names.
  Error fenced(std::string_view scope, std::string_view partition, const Position& from,
               const Position& actual);
  // Runs `work(SqlConnection&)` in a transaction of its own; answers what it answers. A rival that
  // was in the way (a deadlock, say) is no reason to give up: nothing happened.
  template <class Work>
  auto write(const Work& work) -> std::invoke_result_t<Work, SqlConnection&> {
    constexpr int tries_max = 20;
    for (int attempt = 1;; ++attempt) {
      auto done = write_once(work);
      if (done || done.error().tag != "conflict" || attempt == tries_max) return done;
    }
  }
  template <class Work>
  auto write_once(const Work& work) -> std::invoke_result_t<Work, SqlConnection&> {
    const Lease lease = ONCE_TRY(lend());
    ONCE_TRY(lease->begin());
    auto done = work(*lease);
    if (!done) return done;
    ONCE_TRY(lease->commit());
    ONCE_TRY(lease->sync());
    return done;
  }
  struct Locked {
    Position position;
    std::string source_identity;
    std::uint64_t next_fence = 0;
  };
  // The row of a position, made where there is none, and locked until the end of the transaction.
  Result<Locked> lock_position(SqlConnection& connection, std::int64_t scope,
                               std::int64_t partition);
  // StatementChecker (tables.cc)
  Result<StatementShape> prepare(std::string_view statement) override;
  // Refuses a handler's statement that writes what is not transactional. Believed for a minute.
  Status check_tables(std::string_view statement);
  Status log_operation(SqlConnection& connection, std::int64_t scope, std::string_view action,
                       std::string_view subject, std::string_view reason);
  Status trim_operations(SqlConnection& connection, std::int64_t scope);
  // `how` is put behind the read.
  static Result<Position> read_position(SqlConnection& connection, std::string_view scope,
                                        std::string_view partition, std::string_view how);
  Status move_horizon(std::int64_t scope, std::int64_t horizon_ms);
  std::int64_t skew_ms() const { return options_.clock_skew_ms ? options_.clock_skew_ms() : 0; }
  Result<std::int64_t> now_ms(SqlConnection& connection);

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
  Status free_sequences(SqlConnection& connection, std::int64_t destination, std::int64_t partition,
                        std::int64_t first);
  Status check_fence(SqlConnection& connection, std::string_view destination, std::uint64_t fence);
  Status assign_rows(SqlConnection& connection, std::string_view name,
                     std::span<const std::int64_t> numbers,
                     std::span<const std::uint32_t> partitions,
                     std::span<const std::uint64_t> sequences);

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
  Status set_position(SqlConnection& connection, std::int64_t scope, std::int64_t partition,
                      std::int64_t offset);
  Status set_horizon(SqlConnection& connection, std::int64_t scope, std::int64_t horizon_ms);
  Status restart_destination(SqlConnection& connection, std::string_view destination);
  static Status drop_scope(SqlConnection& connection, std::int64_t scope);
  Result<std::string> unpark(SqlConnection& connection, std::string_view scope,
                             std::int64_t scope_number, std::int64_t number);

  // Deferrals (deferrals.cc)
  Result<DueMessages> due(std::string_view scope, std::size_t count_max) override;
  Result<std::vector<DeferredRecord>> deferred(std::string_view scope, std::int64_t after_number,
                                               std::size_t count_max) override;
  Status hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                std::string_view reason) override;
  Status abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                 std::string_view reason) override;
  Result<std::string> lock_deferred(SqlConnection& connection, std::string_view scope,
                                    std::int64_t scope_number, std::int64_t number);

  // Claims (claims.cc)
  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> claims) override;
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override;
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override;
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id, std::size_t count_max) override;

  const std::string where_;
  const SqlWords& words_;
  const ServerStoreOptions options_;
  std::string identity_;  // set when it is opened

  // Taken first, and held while the additional connection is used.
  std::mutex aside_mutex_;
  std::unique_ptr<SqlConnection> aside_;

  std::mutex mutex_;  // no other lock is taken while it is held
  std::condition_variable given_back_;
  std::size_t lent_ = 0;
  std::vector<std::unique_ptr<SqlConnection>> idle_;
  // Forgotten when a connection was lost.
  std::map<std::string, std::int64_t, std::less<>> names_;
  // Statements whose tables were looked at, and when.
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> checked_;
};

}  // namespace once
