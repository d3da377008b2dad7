// SPDX-License-Identifier: Apache-2.0
#include "testing/guarded_store.h"

#include <utility>

#include "testing/guarded_transaction.h"

namespace once::testing {
namespace {

// Of a call that changes nothing.
Status pass(Fate& fate, std::string_view what) {
  const Fault fault = fate.next(Call::ask, what);
  if (fault == Fault::death) throw SimulatedDeath{};
  if (fault != Fault::none) return fail(away_error());
  return {};
}

Error dead_error() { return {Remedy::stop, "dead", "the process has died (injected)", {}}; }

}  // namespace

Result<std::unique_ptr<Transaction>> GuardedStore::begin(std::string_view scope) {
  ONCE_TRY(pass(fate_, "begin"));
  auto inner = ONCE_TRY(store_.begin(scope));
  std::unique_ptr<Transaction> guarded;
  if (inner->sql() != nullptr)
    guarded = std::make_unique<GuardedSql>(std::move(inner), fate_);
  else if (inner->key_value() != nullptr)
    guarded = std::make_unique<GuardedKeyValue>(std::move(inner), fate_);
  else
    guarded = std::make_unique<GuardedTransaction<Transaction>>(std::move(inner), fate_);
  return guarded;
}

Result<Position> GuardedStore::take(std::string_view scope, std::string_view partition,
                                    std::string_view source_identity) {
  ONCE_TRY(pass(fate_, "take"));
  return store_.take(scope, partition, source_identity);
}

Result<Position> GuardedStore::position(std::string_view scope, std::string_view partition) {
  ONCE_TRY(pass(fate_, "position"));
  return store_.position(scope, partition);
}

Result<Forgotten> GuardedStore::forget(std::string_view scope, std::int64_t horizon_ms,
                                       std::size_t rows_max) {
  ONCE_TRY(pass(fate_, "forget"));
  return store_.forget(scope, horizon_ms, rows_max);
}

// A call of claims: it is its own commit.
template <class Answer, class Work>
Result<Answer> GuardedStore::at_once(std::string_view what, const Work& work) {
  switch (fate_.next(Call::commit, what)) {
    case Fault::death: return fail(dead_error());
    case Fault::away: return fail(away_error());
    case Fault::lost_before: return fail(lost_error());
    case Fault::lost_after: ONCE_TRY(work()); return fail(lost_error());
    case Fault::none: break;
  }
  Result<Answer> answer = work();
  if (fate_.next(Call::answer, what) == Fault::death) return fail(dead_error());
  return answer;
}

Result<std::vector<ClaimAnswer>> GuardedStore::claim(std::string_view scope,
                                                     const ClaimTerms& terms,
                                                     std::span<const ClaimRequest> requests) {
  return at_once<std::vector<ClaimAnswer>>(
      "claim", [&] { return store_.claims()->claim(scope, terms, requests); });
}

Result<std::vector<bool>> GuardedStore::renew(std::string_view scope, std::int64_t lease_ms,
                                              std::span<const HeldClaim> claims) {
  return at_once<std::vector<bool>>(
      "renew", [&] { return store_.claims()->renew(scope, lease_ms, claims); });
}

Result<std::vector<bool>> GuardedStore::change(std::string_view scope,
                                               std::span<const ClaimChange> changes) {
  return at_once<std::vector<bool>>("settle the claim",
                                    [&] { return store_.claims()->change(scope, changes); });
}

Result<ClaimRecord> GuardedStore::force(std::string_view scope, const ClaimForce& force) {
  return at_once<ClaimRecord>("force the claim",
                              [&] { return store_.claims()->force(scope, force); });
}

Result<std::vector<ClaimRecord>> GuardedStore::claims(std::string_view scope,
                                                      std::optional<ClaimState> state,
                                                      std::string_view from_id,
                                                      std::size_t count_max) {
  return at_once<std::vector<ClaimRecord>>(
      "list claims", [&] { return store_.claims()->claims(scope, state, from_id, count_max); });
}

}  // namespace once::testing
