// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/resuming.h"
#include "store/sql/server_store.h"

namespace once {

// What an admission wants to know of a record.
inline constexpr std::string_view ledger_columns =
    "outcome, fingerprint, result, source_partition, at_offset";

// The ids of a span, each once, and what the ledger says about them.
class Admission {
 public:
  struct Known {
    std::string compact;    // as the ledger keeps the id
    std::size_t first = 0;  // the entry that goes into the ledger
    std::int64_t partition = 0;
    Verdict::Kind kind = Verdict::Kind::fresh;
    // Of a record that was there before.
    bool found = false;
    Fingerprint fingerprint = {};
    Outcome stored = {};
    std::int64_t stored_partition = 0;
    std::int64_t stored_offset = -1;
  };

  explicit Admission(std::span<const Entry> entries);

  const Entry& entry(const Known& known) const { return entries_[known.first]; }
  // In the order of compact ids, so that two transactions that want the same meet in one order.
  std::span<Known> known() { return known_; }
  // A record was there, with what `ledger_columns` says, from `column` on.
  static void take(Known& known, const SqlAnswer& answer, int row, int column);
  // A verdict for each entry: of equal ids the first is what the ledger said, the others are its
  // duplicates. Of a mismatch with a record, the name of the first partition is left open.
  std::vector<Verdict> verdicts() const;
  const Known& known_of(std::size_t entry) const { return known_[index_[entry]]; }

 private:
  std::span<const Entry> entries_;
  std::vector<std::size_t> index_;  // of each entry in known_
  std::vector<Known> known_;
};

// A transaction on a connection of its own. Writes are queued; `admit`, `run`, `query` and `commit`
// wait for the server. An error dooms the transaction: every later call answers it.
class ServerTransaction : public SqlTransaction, private Resuming {
 public:
  ServerTransaction(ServerStore& store, std::int64_t scope_number, std::string_view scope,
                    ServerStore::Lease lease)
      : store_(store), scope_(scope), scope_number_(scope_number), lease_(std::move(lease)) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to,
                 const Progress& progress = {}) override;
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override;
  Status settle(const Delivery& delivery, const Outcome& outcome) override;
  Status enqueue(std::string_view destination, const Message& message) override;
  Status commit() override;

  Status execute(std::string_view statement, std::span<const Value> values,
                 const Expect& expect) override;
  Result<std::int64_t> run(std::string_view statement, std::span<const Value> values) override;
  Result<Rows> query(std::string_view statement, std::span<const Value> values) override;
  Status fetch(std::string_view statement, std::span<const Value> values, const Expect& expect,
               const Then& then) override;
  Status flush() override;
  SqlDialect dialect() const override { return store_.words().dialect; }

 protected:
  // Records the ids of an admission, and finds out what was there. Born below the horizon: recorded
  // before, or too old.
  virtual Status record_ids(Admission& admission) = 0;

  // Whether this transaction can keep its promise with a handler's statement.
  virtual Status allow(std::string_view) { return {}; }

  SqlConnection& connection() { return *lease_; }
  std::int64_t scope_number() const { return scope_number_; }
  const std::string& where() const { return store_.where(); }

 private:
  // An id that was admitted here and can still be settled.
  struct Fresh {
    std::int64_t partition = 0;
    std::int64_t offset = 0;
  };

  Status check_open() const;
  // Keeps the error for all later calls.
  template <class T>
  Result<T> keep(Result<T> result) {
    if (!result) doom_ = result.error();
    return result;
  }
  Status advance_now(std::string_view partition, const Position& from, std::int64_t to,
                     const Progress& progress);
  Status send_advance(std::int64_t partition, const Position& from, std::int64_t to,
                      const Progress& progress, SqlConnection::Then then);
  Result<std::vector<Verdict>> admit_plain(std::span<const Entry> entries) override;
  // Tells mismatches with records where those are; the only ones to pay for it.
  Status name_partitions(const Admission& admission, std::vector<Verdict>& verdicts);
  Status settle_now(const Delivery& delivery, const Outcome& outcome);
  Status park(const Delivery& delivery, const std::string& reason);
  // Messages that wait (deferrals.cc).
  Status ask_gone(const Entry& entry, bool& gone) override;
  Status resume(const Entry& entry, Outcome::Kind from) override;
  Status ask_behind(const Entry& entry, Verdict& verdict) override;
  Status await_answers() override { return connection().sync(); }
  Status put_off(const Delivery& delivery, const Outcome& outcome);
  Status enqueue_now(std::string_view destination, const Message& message);
  Status commit_now();
  // Of a handler's statement; once for each.
  Status check_statement(std::string_view statement);
  static Rows rows_of(const SqlAnswer& answer);
  Status fetch_now(std::string_view statement, std::span<const Value> values, const Expect& expect,
                   const Then& then);
  Status execute_now(std::string_view statement, std::span<const Value> values,
                     const Expect& expect);
  Result<std::unique_ptr<SqlAnswer>> ask(std::string_view statement, std::span<const Value> values);

  ServerStore& store_;
  const std::string scope_;
  const std::int64_t scope_number_;
  ServerStore::Lease lease_;
  bool committed_ = false;
  bool unchecked_ = false;  // something is queued that must be looked at before the commit
  std::optional<Error> doom_;
  std::unordered_map<std::string, Fresh> fresh_;
  static constexpr std::size_t checked_max = 100;
  std::set<std::string, std::less<>> checked_;  // statements that a handler may run
};

}  // namespace once
