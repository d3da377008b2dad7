// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/key_value.h>
#include <once/sql.h>
#include <once/transaction.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "model/sql_text.h"
#include "runtime/statements.h"

namespace once {

// What a handler wrote, and for which messages.
class Writes {
 public:
  explicit Writes(Statements& run) : run_(run) {}

  // A statement or a command, whether it writes or not.
  void ran(std::string_view statement) { run_.note(statement); }
  void note(std::optional<std::size_t> message) {
    if (!message)
      unattributed_ = true;
    else if (messages_.empty() || messages_.back() != *message)
      messages_.push_back(*message);
  }
  bool any() const { return unattributed_ || !messages_.empty(); }
  // A write that names no message may be for any of them.
  bool maybe_for(std::size_t message) const {
    return unattributed_ ||
           std::find(messages_.begin(), messages_.end(), message) != messages_.end();
  }
  void clear() {
    unattributed_ = false;
    messages_.clear();
  }

 private:
  Statements& run_;
  bool unattributed_ = false;
  std::vector<std::size_t> messages_;
};

// A transaction as a handler sees it: everything goes to the store's, and writes are noted, so that
// a message that is refused after it wrote something can be taken back. Statements that `query`
// runs count as reads, unless they are not a SELECT.
template <class Interface>
class WatchedTransaction : public Interface {
 public:
  WatchedTransaction(Transaction& inner, Writes& writes) : inner_(inner), writes_(writes) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to,
                 const Progress& progress) override {
    return inner_.advance(partition, from, to, progress);
  }
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override {
    return inner_.admit(entries);
  }
  Status settle(const Delivery& delivery, const Outcome& outcome) override {
    return inner_.settle(delivery, outcome);
  }
  Status enqueue(std::string_view destination, const Message& message) override {
    return wrote().enqueue(destination, message);
  }
  Status commit() override { return inner_.commit(); }

 protected:
  void ran(std::string_view statement) { writes_.ran(statement); }
  Transaction& store_transaction() const { return inner_; }
  // The store's transaction, told whose calls these are.
  Transaction& inner() {
    if (this->message_) inner_.on_behalf_of(*this->message_);
    return inner_;
  }
  Transaction& wrote(std::optional<std::size_t> message = std::nullopt) {
    writes_.note(message ? message : this->message_);
    return inner();
  }

 private:
  Transaction& inner_;
  Writes& writes_;
};

class WatchedSql final : public WatchedTransaction<SqlTransaction> {
 public:
  using SqlTransaction::execute, SqlTransaction::query, SqlTransaction::run;
  using WatchedTransaction::WatchedTransaction;

  Status execute(std::string_view statement, std::span<const Value> values,
                 const Expect& expect) override {
    ran(statement);
    return wrote(expect.message).sql()->execute(statement, values, expect);
  }
  Result<std::int64_t> run(std::string_view statement, std::span<const Value> values) override {
    ran(statement);
    return wrote().sql()->run(statement, values);
  }
  Result<Rows> query(std::string_view statement, std::span<const Value> values) override {
    ran(statement);
    Transaction& to = is_select(statement) ? inner() : wrote();
    return to.sql()->query(statement, values);
  }
  Status fetch(std::string_view statement, std::span<const Value> values, const Expect& expect,
               const Then& then) override {
    ran(statement);
    Transaction& to = is_select(statement) ? inner() : wrote(expect.message);
    return to.sql()->fetch(statement, values, expect, then);
  }
  Status flush() override { return inner().sql()->flush(); }
  SqlDialect dialect() const override { return store_transaction().sql()->dialect(); }
};

class WatchedKeyValue final : public WatchedTransaction<KeyValueTransaction> {
 public:
  using WatchedTransaction::WatchedTransaction;

  Result<std::optional<std::string>> get(std::string_view key) override {
    ran("get");
    return inner().key_value()->get(key);
  }
  Status put(std::string_view key, std::string_view value) override {
    ran("put");
    return wrote().key_value()->put(key, value);
  }
  Status erase(std::string_view key) override {
    ran("erase");
    return wrote().key_value()->erase(key);
  }
  Status command(std::span<const std::string> words, const ExpectReply& expect) override {
    if (!words.empty()) ran(words.front());
    return wrote(expect.message).key_value()->command(words, expect);
  }
};

// With the interfaces that the store's transaction has.
inline std::unique_ptr<Transaction> watched(Transaction& inner, Writes& writes) {
  if (inner.sql() != nullptr) return std::make_unique<WatchedSql>(inner, writes);
  if (inner.key_value() != nullptr) return std::make_unique<WatchedKeyValue>(inner, writes);
  return std::make_unique<WatchedTransaction<Transaction>>(inner, writes);
}

}  // namespace once
