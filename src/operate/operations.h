// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/records.h>

#include <cstddef>
#include <string>
#include <vector>

#include "operate/books.h"

namespace once::operate {

// A line of the operation log: what was done to the books, by a person or by Once itself, and why.
struct Operation {
  std::string scope;
  OperationRecord record;
};

struct OperationSelection {
  bool all = false;         // what Once has done by itself, too, such as taking a partition
  std::size_t limit = 100;  // the newest
};

// The newest lines of the scopes of these books, the oldest of them first.
[[nodiscard]] Result<std::vector<Operation>> operations_in(Books& books,
                                                           const OperationSelection& selection);

}  // namespace once::operate
