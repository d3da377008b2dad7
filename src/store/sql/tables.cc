// SPDX-License-Identifier: Apache-2.0
// Whether what a handler writes is undone with its transaction, and survives what the ledger
// survives.
#include <fmt/format.h>

#include "model/handler_statement.h"
#include "store/sql/server_store.h"
#include "store/sql/waves.h"

namespace once {
namespace {

constexpr std::size_t statements_checked_max = 1000;

}  // namespace

Status ServerStore::check_tables(std::string_view statement) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = checked_.find(statement);
    if (found != checked_.end() && now - found->second <= learned_for) return {};
  }
  const auto names = written_tables(statement, syntax_of(words().dialect));
  if (!names.empty()) {
    // Not the connection of the transaction: this must not be part of it.
    const std::string why = ONCE_TRY(
        aside([&](SqlConnection& connection) { return untransactional(connection, names); }));
    if (!why.empty())
      return fail(Remedy::stop, "unsafe",
                  fmt::format("{}: \"{}\" cannot be effectively once: {}", where(),
                              shortened(statement), why));
  }
  const std::lock_guard lock(mutex_);
  if (checked_.size() >= statements_checked_max) checked_.clear();
  checked_.insert_or_assign(std::string(statement), now);
  return {};
}

Result<StatementShape> ServerStore::prepare(std::string_view statement) {
  ONCE_TRY(check_handler_statement(statement, words().dialect));
  auto shape = [&]() -> Result<StatementShape> {
    const Lease lease = ONCE_TRY(lend());
    return lease->describe(statement);
  }();
  if (shape) ONCE_TRY(check_tables(statement));
  return shape;
}

}  // namespace once
