// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operate/books.h"

namespace once::operate {

// A message that waits in the store until it is due.
struct WaitingMessage {
  std::string scope;
  DeferredRecord record;
};
// Those of the scopes to read, by scope and number.
[[nodiscard]] Result<std::vector<WaitingMessage>> waiting_in(Books& books);

// Those of an id, which is one at most unless the id was freed.
[[nodiscard]] Result<std::vector<WaitingMessage>> waiting_of(Books& books, const std::string& scope,
                                                             std::string_view id);

// How many of a scope wait, up to a limit.
struct WaitingCount {
  std::size_t count = 0;
  bool more = false;
};
[[nodiscard]] Result<WaitingCount> count_waiting(Books& books, const std::string& scope);

// Which of those of the scope to change, in exactly one of these ways.
struct WaitingSelection {
  std::vector<std::int64_t> numbers = {};
  bool all = false;

  int ways() const { return int{!numbers.empty()} + int{all}; }
};

// Lets them be handled now, and gives them up. Answer their numbers; all of them or none.
[[nodiscard]] Result<std::vector<std::int64_t>> hasten_waiting(Books& books,
                                                               const WaitingSelection& selection,
                                                               const std::string& reason);
[[nodiscard]] Result<std::vector<std::int64_t>> drop_waiting(Books& books,
                                                             const WaitingSelection& selection,
                                                             const std::string& reason);

}  // namespace once::operate
