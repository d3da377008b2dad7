// SPDX-License-Identifier: Apache-2.0
#include "operate/operations.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "operate/set_aside.h"

namespace once::operate {
namespace {

// What no person has asked for.
bool is_automatic(const OperationRecord& record) {
  constexpr std::array<std::string_view, 4> actions{"take", "park", "forget", "migrate"};
  return std::find(actions.begin(), actions.end(), record.action) != actions.end() &&
         !record.reason.starts_with(by_hand_prefix);
}

}  // namespace

Result<std::vector<Operation>> operations_in(Books& books, const OperationSelection& selection) {
  constexpr std::size_t page_count = 1000;
  std::vector<Operation> found;
  for (const std::string& scope : books.scopes())
    for (std::int64_t after = 0;;) {
      auto page = ONCE_TRY(books.records().operations(scope, after, page_count));
      const bool last = page.size() < page_count;
      if (!page.empty()) after = page.back().number;
      for (OperationRecord& record : page)
        if (selection.all || !is_automatic(record)) found.push_back({scope, std::move(record)});
      if (last) break;
    }
  std::stable_sort(found.begin(), found.end(), [](const Operation& a, const Operation& b) {
    return a.record.at_ms < b.record.at_ms;
  });
  if (found.size() > selection.limit)
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(selection.limit));
  return found;
}

}  // namespace once::operate
