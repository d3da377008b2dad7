// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/sql.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/postgres/postgres.h"

namespace once {

// A transaction on a connection of its own. Writes are queued; `admit`, `run`, `query` and `commit`
// wait for the server, once each. An error dooms the transaction: every later call answers it.
class PostgresTransaction final : public SqlTransaction {
 public:
  PostgresTransaction(PostgresStore& store, std::int64_t scope_number, std::string_view scope,
                      PostgresStore::Lease lease)
      : store_(store), scope_(scope), scope_number_(scope_number), lease_(std::move(lease)) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to) override;
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override;
  Status settle(const Delivery& delivery, const Outcome& outcome) override;
  Status enqueue(std::string_view destination, const Message& message) override;
  Status commit() override;

  Status execute(std::string_view statement, std::span<const Value> values,
                 const Expect& expect) override;
  Result<std::int64_t> run(std::string_view statement, std::span<const Value> values) override;
  Result<Rows> query(std::string_view statement, std::span<const Value> values) override;
  SqlDialect dialect() const override { return SqlDialect::postgresql; }

  [[nodiscard]] Status open() { return keep(lease_->send("BEGIN", {})); }

 private:
  // An id that was admitted here and can still be settled.
  struct Fresh {
    std::int64_t partition = 0;
    std::int64_t offset = 0;
  };
  // Outcomes that are written together, before the commit.
  struct Settled {
    std::vector<std::string> ids;
    std::vector<std::int64_t> outcomes;
    std::vector<std::string> results;
    std::vector<std::string> freed;
  };
  class Admission;

  Status check_open() const;
  // Keeps the error for all later calls.
  template <class T>
  Result<T> keep(Result<T> result) {
    if (!result) doom_ = result.error();
    return result;
  }
  PgConnection& connection() { return *lease_; }

  Status advance_now(std::string_view partition, const Position& from, std::int64_t to);
  Result<std::vector<Verdict>> admit_now(std::span<const Entry> entries);
  Status settle_now(const Delivery& delivery, const Outcome& outcome);
  Status park(const Delivery& delivery, const std::string& reason);
  Status write_settled();
  Status commit_now();
  Status execute_now(std::string_view statement, std::span<const Value> values,
                     const Expect& expect);
  Result<Answer> ask(std::string_view statement, std::span<const Value> values);
  Result<std::string> translated(std::string_view statement, std::span<const Value> values);
  Error unmet(std::string_view statement, std::int64_t rows, const Expect& expect) const;
  Error blame(Error error, std::optional<std::size_t> message) const;

  PostgresStore& store_;
  const std::string scope_;
  const std::int64_t scope_number_;
  PostgresStore::Lease lease_;
  bool committed_ = false;
  bool unchecked_ = false;  // something is queued that must be looked at before the commit
  std::optional<Error> doom_;
  std::unordered_map<std::string, Fresh> fresh_;
  Settled settled_;
};

}  // namespace once
