// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/clock.h>
#include <once/store.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "store/sql/parts.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/gate.h"

namespace once {

struct SqliteOptions {
  // False: a file or tables of ours that are missing or of an older version stay so, and the store
  // can only be asked what it is and about statements.
  bool makes_tables = true;
  std::string synchronous = "FULL";  // anything less is refused
  std::int64_t cache_bytes_max = 64 << 20;
  std::int64_t busy_ms_max = 10'000;   // for how long a transaction waits for its turn
  int checkpoint_pages_min = 8'192;    // of the write-ahead log, before it is moved
  std::size_t scan_rows_max = 20'000;  // ledger rows one call of `forget` looks at
};

// The numbers under which names of scopes, partitions and destinations are kept. Used by who has
// the turn at the gate. Names that a transaction made are forgotten with it if it rolls back.
class Names {
 public:
  [[nodiscard]] Result<std::int64_t> number_of(Connection& writer, std::string_view name);
  void committed();
  void rolled_back() { made_.clear(); }
  void clear();

 private:
  std::map<std::string, std::int64_t, std::less<>> known_;
  std::map<std::string, std::int64_t, std::less<>> made_;
};

// The horizon of a scope as this connection sees it.
[[nodiscard]] Result<std::int64_t> stored_horizon_ms(Connection& connection, std::int64_t scope);

// A store in an SQLite file: write-ahead log, synced at every commit. Thread-safe.
//
// There is one writer connection, and whoever has the turn at the gate uses it; checkpoints are
// made in the same turn. Reads outside of transactions have a connection of their own and never
// wait for the writer. Everything committed survives a power cut; a transaction that was open does
// not survive the process. The store outlives its transactions.
class SqliteStore final : public Store, private SqlBooks, private StatementChecker {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SqliteStore>> open(const std::string& path,
                                                                 const SqliteOptions& options,
                                                                 Clock& clock);
  ~SqliteStore() override;

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

 private:
  friend class SqliteTransaction;

  // How far the ledger of a scope was searched for ids below the horizon. Only a cache: a store
  // that was reopened searches from the start.
  struct Sweep {
    bool running = false;
    std::string after_id;
    std::int64_t horizon_ms = 0;        // when this pass began
    std::int64_t clean_horizon_ms = 0;  // nothing below this is left
    std::int64_t busy_ns = 0;           // what this pass took so far
    std::int64_t rest_until_ns = 0;     // in the clock's ticks
  };
  struct Findings {
    std::vector<std::string> ids;  // below the horizon
    std::string last_id;           // that was looked at
    bool complete = false;         // there are no more rows
  };

  SqliteStore(const std::string& path, const SqliteOptions& options, Clock& clock);
  Status check_file() const;
  Status open_connections();
  Status read_identity();
  Status revive();
  bool makes_tables() const { return options_.makes_tables; }

  Result<StatementShape> prepare(std::string_view statement) override;

  // SqlBooks
  Result<std::int64_t> number_of(SqlSession&, std::string_view name) override {
    return names_.number_of(*writer_, name);
  }
  Status lock_horizon(SqlSession& session, std::int64_t scope) override;
  Status run_reading(const AnyWork& work) override;
  Status run_writing(const AnyWork& work) override;

  // At most `rows_max`; `complete` becomes false when some are left.
  Result<std::size_t> forget_claims(std::string_view scope, std::int64_t horizon_ms,
                                    std::size_t rows_max, bool& complete);

  // A turn with an open transaction on the writer.
  Result<std::unique_ptr<Gate::Turn>> begin_writing();
  // Commits, then moves the write-ahead log when it is long. Ends the transaction either way.
  Status commit_writing();
  void roll_back_writing();
  // Runs `work(Connection&)` in a transaction of its own; answers what it answers.
  template <class Work>
  auto on_writer(Work&& work) -> std::invoke_result_t<Work, Connection&> {
    const auto turn = ONCE_TRY(begin_writing());
    auto done = work(*writer_);
    if (!done) {
      roll_back_writing();
      return done;
    }
    ONCE_TRY(commit_writing());
    return done;
  }
  // Runs `work(Connection&)` on the reader; answers what it answers.
  template <class Work>
  auto on_reader(Work&& work) -> std::invoke_result_t<Work, Connection&> {
    if (in_doubt_) ONCE_TRY(settle_doubt());
    const std::lock_guard lock(reader_mutex_);
    if (reader_ == nullptr) return fail(not_open());
    return work(*reader_);
  }
  Status settle_doubt();
  Error not_open() const;
  void checkpoint_if_long();

  Result<Findings> search(std::string_view scope, const Sweep& sweep, std::size_t rows_max);
  Result<std::size_t> erase(std::string_view scope, const std::vector<std::string>& ids,
                            std::int64_t horizon_ms);

  const std::string path_;
  const SqliteOptions options_;
  Clock& clock_;
  SqlParts parts_;
  std::string identity_;  // set when it is opened
  Gate gate_;

  // Of who has the turn.
  std::unique_ptr<Connection> writer_;
  Names names_;
  int next_checkpoint_pages_;

  std::mutex reader_mutex_;  // taken after a turn, never before
  std::unique_ptr<Connection> reader_;

  // A commit failed in a way that leaves its outcome to the file: all connections are closed and
  // opened again, so that SQLite's recovery decides, before anyone reads or writes.
  std::atomic<bool> in_doubt_{false};

  std::mutex sweep_mutex_;  // taken before a turn
  std::map<std::string, Sweep, std::less<>> sweeps_;
};

}  // namespace once
