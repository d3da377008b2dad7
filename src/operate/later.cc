// SPDX-License-Identifier: Apache-2.0
#include "operate/later.h"

#include "operate/failure.h"

namespace once::operate {
namespace {

constexpr std::size_t page_count = 1000;
constexpr std::size_t counted_max = 10'000;  // counting reads whole messages

// Visits all that wait in a scope, a page of them in memory at a time.
template <class Visit>
Status for_each_waiting(Deferrals& deferrals, const std::string& scope, const Visit& visit) {
  for (std::int64_t after = 0;;) {
    auto page = ONCE_TRY(deferrals.deferred(scope, after, page_count));
    if (page.empty()) return {};
    after = page.back().number;
    for (DeferredRecord& record : page) visit(record);
  }
}

Result<std::vector<std::int64_t>> numbers_in(Books& books, Deferrals& deferrals,
                                             const WaitingSelection& selection) {
  if (!selection.all) return selection.numbers;
  std::vector<std::int64_t> numbers;
  ONCE_TRY(
      for_each_waiting(deferrals, ONCE_TRY(books.scope_to_change()),
                       [&](const DeferredRecord& record) { numbers.push_back(record.number); }));
  if (numbers.empty())
    return fail_not_known("nothing selected: no message waits; nothing was changed");
  return numbers;
}

}  // namespace

Result<std::vector<WaitingMessage>> waiting_in(Books& books) {
  Deferrals* const deferrals = ONCE_TRY(books.deferrals());
  std::vector<WaitingMessage> found;
  for (const std::string& scope : books.scopes())
    ONCE_TRY(for_each_waiting(*deferrals, scope, [&](DeferredRecord& record) {
      found.push_back({scope, std::move(record)});
    }));
  return found;
}

Result<std::vector<WaitingMessage>> waiting_of(Books& books, const std::string& scope,
                                               std::string_view id) {
  std::vector<WaitingMessage> found;
  if (books.store().deferrals() == nullptr) return found;
  ONCE_TRY(for_each_waiting(*books.store().deferrals(), scope, [&](DeferredRecord& record) {
    if (record.message.id == id) found.push_back({scope, std::move(record)});
  }));
  return found;
}

Result<WaitingCount> count_waiting(Books& books, const std::string& scope) {
  WaitingCount waiting;
  if (books.store().deferrals() == nullptr) return waiting;
  for (std::int64_t after = 0; waiting.count < counted_max;) {
    const auto page = ONCE_TRY(books.store().deferrals()->deferred(scope, after, page_count));
    waiting.count += page.size();
    if (page.size() < page_count) return waiting;
    after = page.back().number;
  }
  waiting.more = true;
  return waiting;
}

Result<std::vector<std::int64_t>> hasten_waiting(Books& books, const WaitingSelection& selection,
                                                 const std::string& reason) {
  Deferrals* const deferrals = ONCE_TRY(books.deferrals());
  auto numbers = ONCE_TRY(numbers_in(books, *deferrals, selection));
  ONCE_TRY(deferrals->hasten(ONCE_TRY(books.scope_to_change()), numbers, reason));
  return numbers;
}

Result<std::vector<std::int64_t>> drop_waiting(Books& books, const WaitingSelection& selection,
                                               const std::string& reason) {
  Deferrals* const deferrals = ONCE_TRY(books.deferrals());
  auto numbers = ONCE_TRY(numbers_in(books, *deferrals, selection));
  ONCE_TRY(deferrals->abandon(ONCE_TRY(books.scope_to_change()), numbers, reason));
  return numbers;
}

}  // namespace once::operate
