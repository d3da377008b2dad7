// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/sql/books.h"

namespace once {

class SqlClaims final : public ClaimStore {
 public:
  explicit SqlClaims(SqlBooks& books) : books_(books) {}

  Result<std::vector<ClaimAnswer>> claim(std::string_view scope, const ClaimTerms& terms,
                                         std::span<const ClaimRequest> requests) override;
  Result<std::vector<bool>> renew(std::string_view scope, std::int64_t lease_ms,
                                  std::span<const HeldClaim> claims) override;
  Result<std::vector<bool>> change(std::string_view scope,
                                   std::span<const ClaimChange> changes) override;
  Result<ClaimRecord> force(std::string_view scope, const ClaimForce& force) override;
  Result<std::vector<ClaimRecord>> claims(std::string_view scope, std::optional<ClaimState> state,
                                          std::string_view from_id, std::size_t count_max) override;

 private:
  SqlBooks& books_;
};

}  // namespace once
