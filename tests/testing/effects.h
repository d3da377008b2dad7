// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <once/handler.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "store/memory/memory.h"

namespace once::testing {

// The effect of a message in the tests: its id is written down once more, in order of effect. What
// was committed is read from the store, id by id.
inline Status write_effect(const Delivery& delivery, KeyValueTransaction& transaction) {
  const std::string key = "effects/" + std::string(delivery.partition);
  std::string list = ONCE_TRY(transaction.get(key)).value_or("");
  list += std::string(delivery.id.empty() ? delivery.body : delivery.id) + "\n";
  return transaction.put(key, list);
}

// The handler that does this and nothing else.
inline Result<Outcome> apply_effect(const Delivery& delivery, KeyValueTransaction& transaction) {
  ONCE_TRY(write_effect(delivery, transaction));
  return applied();
}

inline std::vector<std::string> effects_of(const MemoryStore& store, const std::string& partition) {
  const MemoryState state = store.snapshot();
  const auto found = state.values.find("effects/" + partition);
  std::vector<std::string> ids;
  if (found == state.values.end()) return ids;
  std::string id;
  for (const char c : found->second) {
    if (c == '\n') {
      ids.push_back(std::move(id));
      id.clear();
    } else {
      id += c;
    }
  }
  return ids;
}

// "m0", "m1", ... : what a partition of `count` messages must have had as effects, in order.
inline std::vector<std::string> numbered(std::size_t count, const std::string& prefix = "m") {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(prefix + std::to_string(i));
  return ids;
}

}  // namespace once::testing
