// SPDX-License-Identifier: Apache-2.0
#include "store/memory/memory.h"

#include <fmt/format.h>
#include <once/open.h>

#include <algorithm>
#include <limits>

#include "model/route.h"
#include "store/memory/transaction.h"

namespace once {

StoreTraits MemoryStore::traits() const {
  const std::lock_guard lock(mutex_);
  return {"memory:", StoreTraits::Durability::none, false, true, true, state_.identity};
}

Result<std::unique_ptr<Transaction>> MemoryStore::begin(std::string_view scope) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(mutex_);
  return std::make_unique<MemoryTransaction>(*this, scope, generation_);
}

Result<Position> MemoryStore::take(std::string_view scope, std::string_view partition,
                                   std::string_view source_identity) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_partition(partition));
  ONCE_TRY(check_source_identity(source_identity));
  const std::lock_guard lock(mutex_);
  PartitionRecord& taken = partition_at(scope, partition);
  if (is_other_source(taken.source_identity, source_identity))
    return fail(other_source_error(scope, partition, taken.position.offset, taken.source_identity,
                                   source_identity));
  if (!source_identity.empty()) taken.source_identity = source_identity;
  taken.position.fence = next_fence(taken.position.fence, clock_.now_ms());
  log_operation(scope, "take", partition, fmt::format("fence {}", taken.position.fence));
  return taken.position;
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
  if (horizon_ms > books.horizon_ms && !books.horizon_held) {
    books.horizon_ms = horizon_ms;
    // The horizon moves all the time: one line says how far, until something else happens.
    if (!books.operations.empty() && books.operations.back().action == "forget")
      books.operations.pop_back();
    log_operation(scope, "forget", fmt::format("{}", horizon_ms), "the horizon moved");
  }
  Forgotten forgotten;
  const auto below = [&](auto at) {
    return at != books.by_birth.end() && at->first < books.horizon_ms;
  };
  auto at = books.by_birth.begin();
  while (forgotten.rows < rows_max && below(at)) {
    const auto row = books.ledger.find(at->second);
    if (row->second.outcome.kind == Outcome::Kind::later) {  // it waits, and is not settled
      ++at;
      continue;
    }
    books.ledger.erase(row);
    at = books.by_birth.erase(at);
    ++forgotten.rows;
  }
  forgotten.more = forgotten.rows == rows_max && below(at);
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
  for (const auto& [number, row] : found->second) rows.push_back(row);
  // Without a route there is no sequence: these keep the order of their numbers.
  const auto sequence = [](const OutboxRow& row) {
    return row.route ? row.route->sequence : std::numeric_limits<std::uint64_t>::max();
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const OutboxRow& a, const OutboxRow& b) {
    return sequence(a) < sequence(b);
  });
  if (rows.size() > count_max) rows.resize(count_max);
  return rows;
}

Status MemoryStore::assign(std::string_view destination, std::uint64_t fence,
                           std::span<const std::int64_t> numbers,
                           std::span<const std::uint32_t> partitions,
                           std::span<const std::uint64_t> sequences) {
  ONCE_TRY(check_assign(numbers, partitions, sequences));
  const std::lock_guard lock(mutex_);
  ONCE_TRY(check_fence(destination, fence));
  auto& rows = state_.outbox[std::string(destination)];
  for (const std::int64_t number : numbers)
    if (!rows.contains(number))
      return fail(
          Remedy::stop, "missing",
          fmt::format("row {} is not pending in the outbox for \"{}\"", number, destination));
  auto counted = state_.next_sequence;
  std::map<std::int64_t, Route> given;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (rows.at(numbers[i]).route) continue;  // fixed before: it may have been sent already
    std::uint64_t& next = counted[{std::string(destination), partitions[i]}];
    ONCE_TRY(
        check_sequence(destination, partitions[i], static_cast<std::int64_t>(next), sequences, i));
    given[numbers[i]] = Route{partitions[i], next++};
  }
  for (const auto& [number, route] : given) rows.at(number).route = route;
  state_.next_sequence = std::move(counted);
  return {};
}

Status MemoryStore::sent(std::string_view destination, std::uint64_t fence,
                         std::span<const std::int64_t> numbers) {
  const std::lock_guard lock(mutex_);
  ONCE_TRY(check_fence(destination, fence));
  const auto rows = state_.outbox.find(destination);
  if (rows == state_.outbox.end()) return {};
  for (const std::int64_t number : numbers) {
    const auto row = rows->second.find(number);
    if (row != rows->second.end() && row->second.route) rows->second.erase(row);
  }
  return {};
}

Status MemoryStore::park(std::string_view destination, std::uint64_t fence, std::int64_t number,
                         std::string_view reason) {
  const std::lock_guard lock(mutex_);
  ONCE_TRY(check_fence(destination, fence));
  auto& rows = state_.outbox[std::string(destination)];
  const auto poison = rows.find(number);
  if (poison == rows.end()) return {};  // an earlier call, whose answer was lost
  if (const auto route = poison->second.route) {
    for (auto& [other, row] : rows)
      if (row.route && row.route->partition == route->partition &&
          row.route->sequence > route->sequence)
        row.route.reset();
    state_.next_sequence[{std::string(destination), route->partition}] = route->sequence;
  }
  log_operation(outbox_scope, "park", poison->second.message.id, reason);
  scope_at(outbox_scope)
      .parked.push_back({++state_.last_parked_number, std::string(destination), number, 1,
                         clock_.now_ms(), std::string(reason), std::move(poison->second.message)});
  rows.erase(poison);
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
       at != books->ledger.end() && records.size() < count_max; ++at)
    records.push_back(at->second.record(at->first));
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

Result<ScopeRecord> MemoryStore::describe(std::string_view scope) {
  const std::lock_guard lock(mutex_);
  ScopeRecord record;
  record.now_ms = clock_.now_ms();
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return record;
  record.horizon_ms = books->horizon_ms;
  record.horizon_held = books->horizon_held;
  for (const auto& [name, partition] : books->partitions) record.partitions.push_back(partition);
  return record;
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
  const auto found = books->partitions.find(partition);
  return found == books->partitions.end() ? Position{} : found->second.position;
}

PartitionRecord& MemoryStore::partition_at(std::string_view scope, std::string_view partition) {
  auto& partitions = scope_at(scope).partitions;
  const auto found = partitions.find(partition);
  if (found != partitions.end()) return found->second;
  PartitionRecord& made = partitions[std::string(partition)];
  made.partition = partition;
  return made;
}

Status MemoryStore::check_fence(std::string_view destination, std::uint64_t fence) const {
  const Position actual = position_at(relay_scope, destination);
  if (fence == 0 || fence != actual.fence)
    return fail(fenced_error(relay_scope, destination, {actual.offset, fence}, actual));
  return {};
}

void MemoryStore::log_operation(std::string_view scope, std::string_view action,
                                std::string_view subject, std::string_view reason) {
  std::vector<OperationRecord>& lines = scope_at(scope).operations;
  lines.push_back({++state_.last_operation_number, clock_.now_ms(), std::string(action),
                   std::string(subject), std::string(reason)});
  constexpr std::size_t surplus_max = 100;  // many go at once
  if (lines.size() > operations_max + surplus_max)
    lines.erase(lines.begin(), lines.end() - operations_max);
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
