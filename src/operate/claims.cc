// SPDX-License-Identifier: Apache-2.0
#include "operate/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operate/failure.h"
#include "operate/record_json.h"

namespace once::operate {

Result<ClaimPage> claim_page(Books& books, const ClaimQuery& query) {
  ClaimStore* claims = ONCE_TRY(books.claims());
  ClaimPage found;
  for (const std::string& scope : books.scopes()) {
    const std::size_t left = query.count_max - found.entries.size();
    auto page = ONCE_TRY(claims->claims(scope, query.state, query.from_id, left + 1));
    for (ClaimRecord& record : page) {
      if (found.entries.size() == query.count_max) {
        found.next = ClaimEntry{scope, std::move(record)};
        return found;
      }
      found.entries.push_back({scope, std::move(record)});
    }
  }
  return found;
}

Result<std::vector<ClaimEntry>> find_claims(Books& books, const std::string& id) {
  ClaimStore* claims = ONCE_TRY(books.claims());
  std::vector<ClaimEntry> found;
  for (const std::string& scope : books.scopes()) {
    auto records = ONCE_TRY(claims->claims(scope, std::nullopt, id, 1));
    if (!records.empty() && records[0].id == id) found.push_back({scope, std::move(records[0])});
  }
  if (found.empty())
    return fail_not_known(
        fmt::format("\"{}\" is not known: {} has no claim of it", id, books.store().traits().name));
  return found;
}

Result<ClaimEntry> settle_claim(Books& books, const ClaimForce& force) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  ClaimStore* claims = ONCE_TRY(books.claims());
  auto record = ONCE_TRY(claims->force(scope, force));
  return ClaimEntry{scope, std::move(record)};
}

Json json_of(const ClaimEntry& entry) { return json_of(entry.scope, entry.record); }

std::string holder_of(const ClaimRecord& claim) {
  return claim.state == ClaimState::running ? claim.owner.substr(0, claim.owner.find(' '))
                                            : std::string();
}

Result<RoleHolder> role_holder(ClaimStore& claims, std::string_view role_scope,
                               const std::string& id) {
  const auto claim = ONCE_TRY(claims.claims(role_scope, std::nullopt, id, 1));
  if (claim.empty() || claim[0].id != id) return RoleHolder{};
  return RoleHolder{holder_of(claim[0]), claim[0].lease_until_ms, claim[0].reason};
}

}  // namespace once::operate
