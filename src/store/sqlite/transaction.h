// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/resuming.h"
#include "store/sqlite/sqlite.h"

namespace once {

// A transaction on the writer of an SqliteStore. There is no network, so that writes run at once;
// what fails dooms the transaction, and every later call answers the same error. Used by one
// thread.
class SqliteTransaction final : public SqlTransaction, private Resuming {
 public:
  SqliteTransaction(SqliteStore& store, std::string_view scope, std::unique_ptr<Gate::Turn> turn)
      : store_(store), scope_(scope), turn_(std::move(turn)) {}
  ~SqliteTransaction() override;

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
  SqlDialect dialect() const override { return SqlDialect::sqlite; }

 private:
  // An id that was admitted here and can still be settled.
  struct Fresh {
    std::int64_t partition;
    std::int64_t offset;
    std::size_t id_at;  // in ids_
    std::size_t id_size;
  };

  Status check_open() const;
  // Keeps the error for all later calls.
  template <class T>
  Result<T> keep(Result<T> result);

  Connection& writer() { return *store_.writer_; }
  Result<std::int64_t> scope_number();
  Result<std::int64_t> partition_number(std::string_view partition);
  Result<std::int64_t> horizon_ms();

  Status advance_now(std::string_view partition, const Position& from, std::int64_t to,
                     const Progress& progress);
  Result<std::vector<Verdict>> admit_plain(std::span<const Entry> entries) override;
  Status ask_gone(const Entry& entry, bool& gone) override;
  Status resume(const Entry& entry, Outcome::Kind from) override;
  Status ask_behind(const Entry& entry, Verdict& verdict) override;
  Status record(std::span<const Entry> entries, std::span<const EntryFeed::Row> rows,
                std::vector<Verdict>& verdicts);
  Result<std::optional<Verdict>> look_up(const Entry& entry);
  Status settle_now(const Delivery& delivery, const Outcome& outcome);
  Status settle_fresh(const Delivery& delivery, const Outcome& outcome);
  Status park(const Delivery& delivery, const std::string& reason);
  Status put_off(const Delivery& delivery, const Outcome& outcome);
  Status enqueue_now(std::string_view destination, const Message& message);
  Status execute_now(std::string_view statement, std::span<const Value> values,
                     const Expect& expect);
  Result<std::int64_t> run_now(std::string_view statement, std::span<const Value> values,
                               const Expect& expect);
  Status check_still_open(std::string_view statement);
  Result<Statement> prepare(std::string_view statement, std::span<const Value> values);
  void remember(const Entry& entry, std::int64_t partition);
  std::vector<Fresh>::iterator find_fresh(const Delivery& delivery, std::int64_t partition);
  // Whose write it is.
  std::optional<std::size_t> message_of(const Expect& expect) const {
    return expect.message ? expect.message : message_;
  }

  SqliteStore& store_;
  const std::string scope_;
  std::unique_ptr<Gate::Turn> turn_;  // until the end of the transaction
  std::optional<Error> doom_;

  std::optional<std::int64_t> scope_number_;
  std::string partition_;  // the last one asked for
  std::int64_t partition_number_ = 0;
  std::optional<std::int64_t> horizon_ms_;
  std::vector<Fresh> fresh_;
  std::size_t fresh_hint_ = 0;  // outcomes come in the order of admission, mostly
  std::string ids_;
};

}  // namespace once
