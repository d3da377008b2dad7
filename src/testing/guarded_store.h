// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>
#include <once/store.h>

#include "testing/fate.h"

namespace once::testing {

// The user's store, with a fate: every call to it, and to its transactions and claims, may be the
// one at which the process dies or the store fails. A death is the exception SimulatedDeath, which
// the lane lets pass. In calls of claims, which are also made by destructors, it is an error; then
// the next call throws. A dead process can do nothing any more. Used by one thread.
class GuardedStore final : public Store, private ClaimStore {
 public:
  GuardedStore(Store& store, Fate& fate) : store_(store), fate_(fate) {}

  StoreTraits traits() const override { return store_.traits(); }
  Result<std::unique_ptr<Transaction>> begin(std::string_view scope) override;
  Result<Position> take(std::string_view scope, std::string_view partition,
                        std::string_view source_identity = {}) override;
  Result<Position> position(std::string_view scope, std::string_view partition) override;
  Result<Forgotten> forget(std::string_view scope, std::int64_t horizon_ms,
                           std::size_t rows_max) override;
  Outbox* outbox() override { return store_.outbox(); }
  Records* records() override { return store_.records(); }
  Repairs* repairs() override { return store_.repairs(); }
  Deferrals* deferrals() override { return store_.deferrals(); }
  ClaimStore* claims() override { return store_.claims() == nullptr ? nullptr : this; }

 private:
  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> claims) override;
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override;
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override;
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id, std::size_t count_max) override;

  template <class Answer, class Work>
  Result<Answer> at_once(std::string_view what, const Work& work);

  Store& store_;
  Fate& fate_;
};

}  // namespace once::testing
