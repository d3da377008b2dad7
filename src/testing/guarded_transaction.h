// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/key_value.h>
#include <once/sql.h>
#include <once/transaction.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/failpoint.h"
#include "testing/fate.h"

namespace once::testing {

inline Error away_error() {
  return {Remedy::retry, "away", "the store does not answer (injected)", std::nullopt};
}
inline Error lost_error() {
  return {Remedy::recheck, "lost", "the answer was lost (injected)", std::nullopt};
}

// A transaction with a fate. What all kinds of transactions have; `Interface` is one of them.
template <class Interface>
class GuardedTransaction : public Interface {
 public:
  GuardedTransaction(std::unique_ptr<Transaction> inner, Fate& fate)
      : inner_(std::move(inner)), fate_(fate) {}

  Status advance(std::string_view partition, const Position& from, std::int64_t to,
                 const Progress& progress = {}) override {
    ONCE_TRY(pass(Call::write, "advance"));
    return inner_->advance(partition, from, to, progress);
  }
  Result<std::vector<Verdict>> admit(std::span<const Entry> entries) override {
    ONCE_TRY(pass(Call::write, "admit"));
    return inner_->admit(entries);
  }
  Status settle(const Delivery& delivery, const Outcome& outcome) override {
    ONCE_TRY(pass(Call::write, "settle"));
    return inner_->settle(delivery, outcome);
  }
  Status enqueue(std::string_view destination, const Message& message) override {
    ONCE_TRY(pass(Call::write, "enqueue"));
    return inner_->enqueue(destination, message);
  }

  Status commit() override {
    if (broken_) return fail(*broken_);
    switch (fate_.next(Call::commit, "commit")) {
      case Fault::death: throw SimulatedDeath{};
      case Fault::away: return fail(away_error());
      case Fault::lost_before: return fail(lost_error());
      case Fault::lost_after: ONCE_TRY(inner_->commit()); return fail(lost_error());
      case Fault::none: break;
    }
    ONCE_TRY(inner_->commit());
    fate_.note("commit");
    if (fate_.next(Call::answer, "commit") == Fault::death) throw SimulatedDeath{};
    return {};
  }

 protected:
  Transaction& inner() const { return *inner_; }

  // A queued write that fails spoils the transaction; a read that fails does not, just as a lock
  // that is waited for in vain does not in MySQL.
  Status pass(Call call, std::string_view what) {
    if (this->message_) inner_->on_behalf_of(*this->message_);
    if (broken_) return fail(*broken_);
    const Fault fault = fate_.next(call, what);
    if (fault == Fault::death) throw SimulatedDeath{};
    if (fault == Fault::none) return {};
    if (call == Call::write) broken_ = away_error();
    return fail(away_error());
  }

 private:
  std::unique_ptr<Transaction> inner_;
  Fate& fate_;
  std::optional<Error> broken_;
};

class GuardedSql final : public GuardedTransaction<SqlTransaction> {
 public:
  using GuardedTransaction::GuardedTransaction;

  Status execute(std::string_view statement, std::span<const Value> values,
                 const Expect& expect) override {
    ONCE_TRY(pass(Call::write, statement));
    return inner().sql()->execute(statement, values, expect);
  }
  Result<std::int64_t> run(std::string_view statement, std::span<const Value> values) override {
    ONCE_TRY(pass(Call::read, statement));
    return inner().sql()->run(statement, values);
  }
  Result<Rows> query(std::string_view statement, std::span<const Value> values) override {
    ONCE_TRY(pass(Call::read, statement));
    return inner().sql()->query(statement, values);
  }
  SqlDialect dialect() const override { return inner().sql()->dialect(); }
};

class GuardedKeyValue final : public GuardedTransaction<KeyValueTransaction> {
 public:
  using GuardedTransaction::GuardedTransaction;

  Result<std::optional<std::string>> get(std::string_view key) override {
    ONCE_TRY(pass(Call::read, "get " + std::string(key)));
    return inner().key_value()->get(key);
  }
  Status put(std::string_view key, std::string_view value) override {
    ONCE_TRY(pass(Call::write, "put " + std::string(key)));
    return inner().key_value()->put(key, value);
  }
  Status erase(std::string_view key) override {
    ONCE_TRY(pass(Call::write, "erase " + std::string(key)));
    return inner().key_value()->erase(key);
  }
};

}  // namespace once::testing
