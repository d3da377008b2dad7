// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"
#include "operate/later.h"

namespace once::operate {

// What a scope has in a store.
struct ScopeSummary {
  std::string scope;
  std::size_t partitions = 0;
  std::size_t ids = 0;    // in the ledger ...
  bool more_ids = false;  // ... and more than could be counted
  std::size_t parked = 0;
  WaitingCount waiting = {};
  std::size_t claims = 0;
  bool more_claims = false;
  std::string holder = {};  // the process that runs it; empty: none is known to
};

// Of the scope that was asked for, or of all of users.
[[nodiscard]] Result<std::vector<ScopeSummary>> scopes_in(Books& books);

// What a drop is about to delete. A scope of Once itself is refused, and one that a process holds
// or that has claims with a lease is an error of the tag "busy".
[[nodiscard]] Result<ScopeSummary> plan_scope_drop(Books& books, const std::string& scope);
// Deletes all that the scope has. While it goes on, no pipeline takes the scope.
[[nodiscard]] Result<ScopeSummary> drop_scope(Books& books, const std::string& scope,
                                              const std::string& reason);

Json json_of(const ScopeSummary& scope);

}  // namespace once::operate
