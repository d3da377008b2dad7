// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/store.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/sql_tables.h"
#include "store/sql/connection.h"
#include "store/sql/parts.h"

namespace once {

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
class ServerStore : public Store, protected SqlBooks, private StatementChecker {
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
                        std::string_view source_identity = {}) override {
    return parts_.positions.take(scope, partition, source_identity);
  }
  Result<Position> position(std::string_view scope, std::string_view partition) override {
    return parts_.positions.position(scope, partition);
  }
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override;
  Outbox* outbox() override { return makes_tables() ? &parts_.outbox : nullptr; }
  Records* records() override { return makes_tables() ? &parts_.records : nullptr; }
  Repairs* repairs() override { return makes_tables() ? &parts_.repairs : nullptr; }
  ClaimStore* claims() override { return makes_tables() ? &parts_.claims : nullptr; }
  Deferrals* deferrals() override { return makes_tables() ? &parts_.deferrals : nullptr; }
  StatementChecker* statement_checker() override { return this; }

 protected:
  // `where` is what people may see of the URL.
  ServerStore(std::string where, const SqlWords& words, ServerStoreOptions options)
      : SqlBooks(std::move(where), words, options.clock_skew_ms),
        options_(std::move(options)),
        parts_(*this) {}

  // What an adapter adds.
  virtual Result<std::unique_ptr<SqlConnection>> connect() = 0;
  virtual std::unique_ptr<Transaction> make_transaction(std::int64_t scope_number,
                                                        std::string_view scope, Lease lease) = 0;
  // Begins a transaction of a handler.
  virtual Status begin_on(SqlConnection& connection) { return connection.begin(); }
  // Which rows of a table may go: those of a scope that were born before and meet the condition.
  struct Old {
    std::string_view table;
    std::string_view condition;
    std::int64_t scope = 0;
    std::int64_t horizon_ms = 0;
  };
  // Deletes the oldest of them, in one statement; answers how many.
  virtual Result<std::int64_t> delete_old(SqlSession& session, const Old& old,
                                          std::size_t rows_max) = 0;

  // Why the effects in one of these tables, or in what their triggers and views write, would not
  // be part of the transaction; empty if all of them are.
  virtual Result<std::string> untransactional(SqlConnection& connection,
                                              const std::vector<SqlName>& names) = 0;

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

  // SqlBooks
  Result<std::int64_t> number_of(SqlSession&, std::string_view name) override {
    return number_of(name);
  }
  void forget_numbers() override { forget_what_is_known(); }
  Status run_reading(const AnyWork& work) override;
  Status run_writing(const AnyWork& work) override;
  Status write_once(const AnyWork& work);

  // StatementChecker (tables.cc)
  Result<StatementShape> prepare(std::string_view statement) override;
  // Refuses a handler's statement that writes what is not transactional. Believed for a minute.
  Status check_tables(std::string_view statement);

  const ServerStoreOptions options_;
  SqlParts parts_;
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
