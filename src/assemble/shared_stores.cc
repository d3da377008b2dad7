// SPDX-License-Identifier: Apache-2.0
#include "assemble/shared_stores.h"

#include <once/open.h>

#include <utility>

namespace once::assemble {

Result<LookedAtStore> SharedStores::to_run(std::string_view url) {
  std::string made_file = missing_file_of(url);
  auto store = ONCE_TRY(open_store(url));
  return LookedAtStore{.store = std::move(store), .made_file = std::move(made_file)};
}

Result<LookedAtStore> SharedStores::open(const std::string& url) {
  const std::scoped_lock lock(mutex_);
  Known& known = stores_[url];
  if (auto store = known.store.lock())
    return LookedAtStore{std::move(store), known.state, known.made_file};
  LookedAtStore made = ONCE_TRY(open_(url));
  known = {made.store, made.state, made.made_file};
  return made;
}

}  // namespace once::assemble
