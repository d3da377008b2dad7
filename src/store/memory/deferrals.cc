// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "model/ledger.h"
#include "store/memory/memory.h"

namespace once {
namespace {

using Deferred = std::map<std::int64_t, DeferredRecord>;

// All of them or none.
Status check_numbers(std::string_view scope, const Deferred* deferred,
                     std::span<const std::int64_t> numbers) {
  std::set<std::int64_t> seen;
  for (const std::int64_t number : numbers)
    if (deferred == nullptr || !deferred->contains(number) || !seen.insert(number).second)
      return fail(missing_deferred(scope, number));
  return {};
}

}  // namespace

Deferred* MemoryStore::find_deferred(std::string_view scope) {
  const auto found = state_.scopes.find(scope);
  return found == state_.scopes.end() ? nullptr : &found->second.deferred;
}

Result<DueMessages> MemoryStore::due(std::string_view scope, std::size_t count_max) {
  ONCE_TRY(check_scope(scope));
  const std::lock_guard lock(mutex_);
  DueMessages due;
  const Deferred* deferred = find_deferred(scope);
  if (deferred == nullptr || deferred->empty()) return due;
  std::vector<const DeferredRecord*> all;
  for (const auto& [number, record] : *deferred) all.push_back(&record);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->due_ms < b->due_ms; });
  const std::int64_t now_ms = clock_.now_ms();
  due.wait_ms = std::max<std::int64_t>(0, all.front()->due_ms - now_ms);
  for (const DeferredRecord* record : all)
    if (record->due_ms <= now_ms && due.messages.size() < count_max)
      due.messages.push_back(*record);
  return due;
}

Result<std::vector<DeferredRecord>> MemoryStore::deferred(std::string_view scope,
                                                          std::int64_t after_number,
                                                          std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  std::vector<DeferredRecord> records;
  const Deferred* deferred = find_deferred(scope);
  if (deferred == nullptr) return records;
  for (auto at = deferred->upper_bound(after_number);
       at != deferred->end() && records.size() < count_max; ++at)
    records.push_back(at->second);
  return records;
}

Status MemoryStore::hasten(std::string_view scope, std::span<const std::int64_t> numbers,
                           std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::lock_guard lock(mutex_);
  Deferred* deferred = find_deferred(scope);
  ONCE_TRY(check_numbers(scope, deferred, numbers));
  (void)ONCE_TRY(write([&] {
    for (const std::int64_t number : numbers) {
      DeferredRecord& record = deferred->at(number);
      record.due_ms = std::min(record.due_ms, clock_.now_ms());
      log_operation(scope, "hasten", record.message.id, deferral_note(number, reason));
    }
    return true;
  }));
  return {};
}

Status MemoryStore::abandon(std::string_view scope, std::span<const std::int64_t> numbers,
                            std::string_view reason) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_reason(reason));
  const std::lock_guard lock(mutex_);
  Deferred* deferred = find_deferred(scope);
  ONCE_TRY(check_numbers(scope, deferred, numbers));
  const auto give_up = [&](std::int64_t number) {
    const auto at = deferred->find(number);
    const std::string& id = at->second.message.id;
    auto& ledger = scope_at(scope).ledger;
    const auto row = ledger.find(id);
    if (row != ledger.end() && row->second.outcome.kind == Outcome::Kind::later)
      row->second.outcome = abandoned(reason);
    log_operation(scope, "abandon", id, deferral_note(number, reason));
    deferred->erase(at);
  };
  (void)ONCE_TRY(write([&] {
    for (const std::int64_t number : numbers) give_up(number);
    return true;
  }));
  return {};
}

}  // namespace once
