// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>
#include <limits>

#include "store/memory/transaction.h"

namespace once {

StoreTraits MemoryStore::traits() const {
  return {"memory:", StoreTraits::Durability::none, false, true, true};
}

Result<std::unique_ptr<Transaction>> MemoryStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(mutex_);
  return std::make_unique<MemoryTransaction>(*this, scope, generation_);
}

Result<Position> MemoryStore::take(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const std::lock_guard lock(mutex_);
  Position position = position_at(scope, partition);
  ++position.fence;
  scope_at(scope).positions[std::string(partition)] = position;
  log_operation(scope, "take", partition, fmt::format("fence {}", position.fence));
  return position;
}

Result<Position> MemoryStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  const std::lock_guard lock(mutex_);
  return position_at(scope, partition);
}

Result<Forgotten> MemoryStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                      std::size_t rows_max) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(mutex_);
  MemoryState::Scope& books = scope_at(scope);
  if (horizon_ms > books.horizon_ms) {
    books.horizon_ms = horizon_ms;
    // The horizon moves all the time: one line says how far, until something else happens.
    if (!books.operations.empty() && books.operations.back().action == "forget")
      books.operations.pop_back();
    log_operation(scope, "forget", fmt::format("{}", horizon_ms), "the horizon moved");
  }
  Forgotten forgotten;
  while (forgotten.rows < rows_max && !books.by_birth.empty() &&
         books.by_birth.begin()->first < books.horizon_ms) {
    books.ledger.erase(books.by_birth.begin()->second);
    books.by_birth.erase(books.by_birth.begin());
    ++forgotten.rows;
  }
  forgotten.more = !books.by_birth.empty() && books.by_birth.begin()->first < books.horizon_ms;
  forget_claims(books, rows_max, forgotten);
  return forgotten;
}

void MemoryStore::set_commit_fault(std::function<CommitFault()> fault) {
  const std::lock_guard lock(mutex_);
  commit_fault_ = std::move(fault);
}

void MemoryStore::crash() {
  const std::lock_guard lock(mutex_);
  ++generation_;
}

MemoryState MemoryStore::snapshot() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void MemoryStore::restore(MemoryState state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
  ++generation_;
}

Result<std::vector<std::string>> MemoryStore::destinations() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, rows] : state_.outbox)
    if (!rows.empty()) names.push_back(name);
  return names;
}

Result<std::vector<OutboxRow>> MemoryStore::pending(std::string_view destination,
                                                    std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  std::vector<OutboxRow> rows;
  const auto found = state_.outbox.find(destination);
  if (found == state_.outbox.end()) return rows;
  for (const auto& [number, row] : found->second) {
    if (rows.size() == count_max) break;
    rows.push_back(row);
  }
  return rows;
}

Status MemoryStore::assign(std::string_view destination, std::uint64_t fence,
                           std::span<const std::int64_t> numbers,
                           std::span<const std::uint32_t> partitions) {
  if (numbers.size() != partitions.size())
    return fail(Remedy::stop, "config", "assign needs one partition for each row");
  const std::lock_guard lock(mutex_);
  ONCE_TRY(check_fence(destination, fence));
  auto& rows = state_.outbox[std::string(destination)];
  for (const std::int64_t number : numbers)
    if (!rows.contains(number))
      return fail(
          Remedy::stop, "missing",
          fmt::format("row {} is not pending in the outbox for \"{}\"", number, destination));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::optional<Route>& route = rows.at(numbers[i]).route;
    if (route) continue;  // fixed before: it may have been sent already
    std::uint64_t& next = state_.next_sequence[{std::string(destination), partitions[i]}];
    route = Route{partitions[i], next++};
  }
  return {};
}

Status MemoryStore::sent(std::string_view destination, std::uint64_t fence,
                         std::span<const std::int64_t> numbers) {
  const std::lock_guard lock(mutex_);
  ONCE_TRY(check_fence(destination, fence));
  const auto rows = state_.outbox.find(destination);
  if (rows == state_.outbox.end()) return {};
  for (const std::int64_t number : numbers) rows->second.erase(number);
  return {};
}

Result<std::vector<std::string>> MemoryStore::scopes() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, books] : state_.scopes) names.push_back(name);
  return names;
}

Result<std::vector<LedgerRecord>> MemoryStore::ledger(std::string_view scope,
                                                      std::string_view from_id,
                                                      std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  std::vector<LedgerRecord> records;
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return records;
  for (auto at = books->ledger.lower_bound(from_id);
       at != books->ledger.end() && records.size() < count_max; ++at) {
    const MemoryState::LedgerRow& row = at->second;
    records.push_back({at->first, row.fingerprint, row.outcome, row.born_ms, row.recorded_ms,
                       row.partition, row.offset});
  }
  return records;
}

namespace {

template <class T>
std::vector<T> after(const std::vector<T>& all, std::int64_t number, std::size_t count_max) {
  auto at = std::upper_bound(all.begin(), all.end(), number,
                             [](std::int64_t value, const T& row) { return value < row.number; });
  const auto left = static_cast<std::size_t>(all.end() - at);
  return {at, at + static_cast<std::ptrdiff_t>(std::min(left, count_max))};
}

}  // namespace

Result<std::vector<ParkedRecord>> MemoryStore::parked(std::string_view scope,
                                                      std::int64_t after_number,
                                                      std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return std::vector<ParkedRecord>{};
  return after(books->parked, after_number, count_max);
}

Result<std::vector<OperationRecord>> MemoryStore::operations(std::string_view scope,
                                                             std::int64_t after_number,
                                                             std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return std::vector<OperationRecord>{};
  return after(books->operations, after_number, count_max);
}

Result<std::int64_t> MemoryStore::horizon_ms(std::string_view scope) {
  const std::lock_guard lock(mutex_);
  const MemoryState::Scope* books = find_scope(scope);
  return books == nullptr ? 0 : books->horizon_ms;
}

MemoryState::Scope& MemoryStore::scope_at(std::string_view scope) {
  const auto found = state_.scopes.find(scope);
  if (found != state_.scopes.end()) return found->second;
  return state_.scopes[std::string(scope)];
}

const MemoryState::Scope* MemoryStore::find_scope(std::string_view scope) const {
  const auto found = state_.scopes.find(scope);
  return found == state_.scopes.end() ? nullptr : &found->second;
}

Position MemoryStore::position_at(std::string_view scope, std::string_view partition) const {
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return {};
  const auto found = books->positions.find(partition);
  return found == books->positions.end() ? Position{} : found->second;
}

Status MemoryStore::check_fence(std::string_view destination, std::uint64_t fence) const {
  const Position actual = position_at(relay_scope, destination);
  if (fence == 0 || fence != actual.fence)
    return fail(fenced_error(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

void MemoryStore::log_operation(std::string_view scope, std::string_view action,
                                std::string_view subject, std::string_view reason) {
  scope_at(scope).operations.push_back({++state_.last_operation_number, clock_.now_ms(),
                                        std::string(action), std::string(subject),
                                        std::string(reason)});
}

Error MemoryStore::lost_answer() {
  return {Remedy::recheck, "lost",
          "memory: the connection to the store was lost; look up what is there before you go on",
          std::nullopt};
}

Result<std::unique_ptr<Store>> open_memory_store() {
  return std::make_unique<MemoryStore>(system_clock());
}

}  // namespace once
