// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/claim.h"
#include "model/ledger.h"
#include "store/memory/memory.h"

namespace once {

Result<std::vector<ClaimAnswer>> MemoryStore::claim(std::string_view scope, const ClaimTerms& terms,
                                                    std::span<const ClaimRequest> requests) {
  ONCE_TRY(check_scope(scope));
  ONCE_TRY(check_terms(terms));
  ONCE_TRY(check_requests(requests));
  const std::lock_guard lock(mutex_);
  return write([&] {
    MemoryState::Scope& books = scope_at(scope);
    std::vector<ClaimAnswer> answers;
    answers.reserve(requests.size());
    for (const ClaimRequest& request : requests) {
      std::optional<ClaimRecord> row;
      if (const auto found = books.claims.find(request.id); found != books.claims.end())
        row = found->second;
      answers.push_back(answer_claim(row, request, terms, clock_.now_ms(), books.horizon_ms));
      if (row) books.claims.insert_or_assign(row->id, *row);
    }
    return answers;
  });
}

ClaimRecord* MemoryStore::find_claim(std::string_view scope, std::string_view id) {
  const auto books = state_.scopes.find(scope);
  if (books == state_.scopes.end()) return nullptr;
  const auto found = books->second.claims.find(id);
  return found == books->second.claims.end() ? nullptr : &found->second;
}

Result<std::vector<bool>> MemoryStore::renew(std::string_view scope, std::int64_t lease_ms,
                                             std::span<const HeldClaim> claims) {
  const std::lock_guard lock(mutex_);
  return write([&] {
    std::vector<bool> ours;
    for (const HeldClaim& held : claims) {
      ClaimRecord* row = find_claim(scope, held.id);
      ours.push_back(row != nullptr && renew_claim(*row, held.fence, lease_ms, clock_.now_ms()));
    }
    return ours;
  });
}

Result<std::vector<bool>> MemoryStore::change(std::string_view scope,
                                              std::span<const ClaimChange> changes) {
  ONCE_TRY(check_changes(changes));
  const std::lock_guard lock(mutex_);
  return write([&] {
    std::vector<bool> ours;
    for (const ClaimChange& change : changes) {
      ClaimRecord* row = find_claim(scope, change.id);
      ours.push_back(row != nullptr && change_claim(*row, change, clock_.now_ms()));
    }
    return ours;
  });
}

Result<ClaimRecord> MemoryStore::force(std::string_view scope, const ClaimForce& force) {
  ONCE_TRY(check_force(force));
  const std::lock_guard lock(mutex_);
  ClaimRecord* row = find_claim(scope, force.id);
  if (row == nullptr) return fail(missing_claim(scope, force.id));
  force_claim(*row, force, clock_.now_ms());
  log_operation(scope, force_action(force.to), force.id, force.reason);
  return *row;
}

Result<std::vector<ClaimRecord>> MemoryStore::claims(std::string_view scope,
                                                     std::optional<ClaimState> state,
                                                     std::string_view from_id,
                                                     std::size_t count_max) {
  const std::lock_guard lock(mutex_);
  std::vector<ClaimRecord> records;
  const MemoryState::Scope* books = find_scope(scope);
  if (books == nullptr) return records;
  for (auto at = books->claims.lower_bound(from_id);
       at != books->claims.end() && records.size() < count_max; ++at) {
    ClaimRecord record = as_of(at->second, clock_.now_ms());
    if (!state || record.state == *state) records.push_back(std::move(record));
  }
  return records;
}

void MemoryStore::forget_claims(MemoryState::Scope& books, std::size_t rows_max,
                                Forgotten& forgotten) {
  const std::int64_t now_ms = clock_.now_ms();
  for (auto at = books.claims.begin(); at != books.claims.end();) {
    if (!can_be_forgotten(at->second, now_ms, books.horizon_ms)) {
      ++at;
      continue;
    }
    if (forgotten.rows == rows_max) {
      forgotten.more = true;
      return;
    }
    at = books.claims.erase(at);
    ++forgotten.rows;
  }
}

}  // namespace once
