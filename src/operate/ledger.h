// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "operate/books.h"
#include "operate/json.h"

namespace once::operate {

// What a scope's ledger keeps of an id.
struct LedgerEntry {
  std::string scope;
  LedgerRecord record;
};

struct LedgerQuery {
  std::string from_id = {};
  std::optional<Outcome::Kind> outcome = {};  // only those
  std::size_t count_max = 100;
};

struct LedgerPage {
  std::vector<LedgerEntry> entries = {};
  std::optional<LedgerEntry> next = {};  // where the next page begins
};

// Scope by scope, in the order of the store.
[[nodiscard]] Result<LedgerPage> ledger_page(Books& books, const LedgerQuery& query);
// An id in every scope that knows it; an error of the tag "not_known" if none does.
[[nodiscard]] Result<std::vector<LedgerEntry>> find_in_ledger(Books& books, const std::string& id);

// Frees an id: the next delivery with it counts as new. Answers what the ledger had.
[[nodiscard]] Result<LedgerEntry> release_id(Books& books, const std::string& id,
                                             const std::string& reason);

Json json_of(const LedgerEntry& entry);
Json released_json(const LedgerEntry& was);

}  // namespace once::operate
