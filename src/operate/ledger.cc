// SPDX-License-Identifier: Apache-2.0
#include "operate/ledger.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "operate/failure.h"
#include "operate/message_json.h"
#include "operate/record_json.h"

namespace once::operate {
namespace {

constexpr std::size_t page_count_max = 1000;

// Reads a scope's ledger from an id on until `take` has enough and answers false.
Status walk_ledger(Books& books, const std::string& scope, std::string from, std::size_t page_count,
                   const std::function<bool(LedgerRecord&)>& take) {
  // A page begins with the id that it is asked for, and that is the last one of the page before.
  for (std::size_t first = 0;; first = 1) {
    auto page = ONCE_TRY(books.records().ledger(scope, from, page_count));
    const bool is_last = page.size() < page_count;
    if (!page.empty()) from = page.back().id;
    for (std::size_t i = first; i < page.size(); ++i)
      if (!take(page[i])) return {};
    if (is_last) return {};
  }
}

}  // namespace

Result<LedgerPage> ledger_page(Books& books, const LedgerQuery& query) {
  LedgerPage found;
  const std::size_t page_count = query.outcome ? page_count_max : query.count_max + 1;
  for (const std::string& scope : books.scopes()) {
    if (found.next) break;
    ONCE_TRY(walk_ledger(books, scope, query.from_id, page_count, [&](LedgerRecord& record) {
      if (query.outcome && record.outcome.kind != *query.outcome) return true;
      if (found.entries.size() == query.count_max) {
        found.next = LedgerEntry{scope, std::move(record)};
        return false;
      }
      found.entries.push_back({scope, std::move(record)});
      return true;
    }));
  }
  return found;
}

Result<std::vector<LedgerEntry>> find_in_ledger(Books& books, const std::string& id) {
  std::vector<LedgerEntry> found;
  for (const std::string& scope : books.scopes())
    if (auto record = ONCE_TRY(books.records().find(scope, id)))
      found.push_back({scope, std::move(*record)});
  if (found.empty())
    return fail_not_known(fmt::format("\"{}\" is not known: it is in no ledger of {}", id,
                                      books.store().traits().name));
  return found;
}

Result<LedgerEntry> release_id(Books& books, const std::string& id, const std::string& reason) {
  const std::string scope = ONCE_TRY(books.scope_to_change());
  Repairs* repairs = ONCE_TRY(books.repairs());
  auto was = ONCE_TRY(books.records().find(scope, id));
  ONCE_TRY(repairs->force(scope, id, reason));
  LedgerEntry released{scope, {}};
  if (was) released.record = std::move(*was);
  released.record.id = id;
  return released;
}

Json json_of(const LedgerEntry& entry) { return json_of(entry.scope, entry.record); }

Json released_json(const LedgerEntry& was) {
  Json json = {{"scope", was.scope}};
  put_bytes(json, "id", was.record.id);
  json["forced"] = true;
  json["was"] = json_of(was);
  return json;
}

}  // namespace once::operate
