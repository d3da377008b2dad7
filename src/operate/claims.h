// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/claims.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"

namespace once::operate {

// A claim on an effect outside the store, and the scope that has it.
struct ClaimEntry {
  std::string scope;
  ClaimRecord record;
};

struct ClaimQuery {
  std::optional<ClaimState> state = {};  // only those
  std::string from_id = {};
  std::size_t count_max = 100;
};

struct ClaimPage {
  std::vector<ClaimEntry> entries = {};
  std::optional<ClaimEntry> next = {};  // where the next page begins
};

// Scope by scope, in the order of ids.
[[nodiscard]] Result<ClaimPage> claim_page(Books& books, const ClaimQuery& query);
// A claim in every scope that has it; an error of the tag "not_known" if none does.
[[nodiscard]] Result<std::vector<ClaimEntry>> find_claims(Books& books, const std::string& id);

// Settles a claim, whoever holds it. Answers what it is then.
[[nodiscard]] Result<ClaimEntry> settle_claim(Books& books, const ClaimForce& force);

Json json_of(const ClaimEntry& entry);

// The process that holds a claim now; empty: none does.
std::string holder_of(const ClaimRecord& claim);

struct RoleHolder {
  std::string process;              // empty: none has the role
  std::int64_t lease_until_ms = 0;  // in the store's time; past: it has not been heard of since
  std::string reason = {};          // with which it was given back
};
[[nodiscard]] Result<RoleHolder> role_holder(ClaimStore& claims, std::string_view role_scope,
                                             const std::string& id);

}  // namespace once::operate
